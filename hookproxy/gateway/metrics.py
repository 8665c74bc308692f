"""What a gateway counts, in the text format that Prometheus reads. Pure, but for the time.

No user is a label: users are many, and whoever may read metrics need not know what each of them does.
Source: Prometheus exposition format 0.0.4.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from .. import __version__

if TYPE_CHECKING:
    from ..model.policy_source import PolicyBundle

Labels = tuple[tuple[str, str], ...]

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets of times, in seconds: from an in-process hook to a person who is asked."""

MOST_TOOLS: Final = 1000
"""Tools that are counted by name. Agents choose names: further ones are counted as `other`."""

LONGEST_NAME: Final = 256
"""Characters of a tool's name: longer ones are counted as `other`, too. MCP's have at most 128."""

OTHER: Final = "other"


class Histogram:
    """How often a time was at most each bound."""

    def __init__(self) -> None:
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count one time."""
        self._buckets[bisect_left(BOUNDS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        """The samples."""
        count = 0
        for bound, found in zip((*map(str, BOUNDS), "+Inf"), self._buckets, strict=True):
            count += found
            yield sample(f"{name}_bucket", (*labels, ("le", bound)), count)
        yield sample(f"{name}_sum", labels, round(self._sum, 6))
        yield sample(f"{name}_count", labels, count)


class Metrics:
    """The numbers of one gateway since it has started."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str, str, str]] = Counter()  # server, tool, decision, result
        self._tools: set[tuple[str, str]] = set()
        self._hook_seconds: dict[str, Histogram] = {}  # by server
        self._server_seconds: dict[str, Histogram] = {}
        self.refused_requests: Counter[str] = Counter()
        """Requests over HTTP that were refused, by status."""
        self.refused_sessions: Counter[str] = Counter()
        """Sessions that were not opened, by server: those of the configuration, else `other`."""
        self.dropped_messages: Counter[str] = Counter()
        """Messages of shared servers that certainly belonged to no session, by server."""
        self.reloads: Counter[str] = Counter()
        """Attempts to change the policy, by `ok` or `error`."""
        self.waiting_sessions = 0
        """Sessions that wait for room."""
        self.server_memory: Mapping[str, int] = {}
        """Bytes that the processes of each server use."""
        self.ended_for_memory: Mapping[str, int] = {}
        """Processes of each server that were ended because they used too much."""
        self.sandboxes: Mapping[str, str] = {}
        self.sandbox_limits = ""
        """What confines the process of each server that has one: bubblewrap, landlock, or off."""
        self.store_up: bool | None = None
        """Whether the store can be reached; None: there is none."""
        self.audit_sent = 0
        """Lines of the audit that the collector has taken."""
        self.audit_unsent: Callable[[], int] | None = None
        """Returns how many bytes of the audit are to be sent; None: there is no collector."""
        self.instance = ""
        """The gateway's name; empty: it has none."""
        self.audit_written = 0
        """Lines of the audit that are in its files."""
        self.audit_failed = 0
        """How often a line of the audit, or a call that must have one, could not be written."""
        self.audit_lost = 0
        """Lines of the audit that will never be in its files."""
        self.audit_refused = 0
        """Calls that were refused because they could not be recorded."""
        self.audit_up = True
        """The audit could be written the last time."""
        self.audit_unsigned: Callable[[], int] | None = None
        """Returns how many lines wait for a signed checkpoint; None: nothing is signed."""
        self.policy_changed = 0
        """Files that have changed since the policy was read."""
        self.policy_updates: PolicyUpdateCounts | None = None
        """What is known of the source of a signed policy; None: there is none."""
        self.store_failures = 0
        """How often something was asked of the store that it could not be asked, or did not answer."""

    def note_call(  # what is known of it
        self, server: str, tool: str, decision: str, result: str, seconds: float, hook_seconds: float
    ) -> None:
        """Count one judged call. `seconds` are all that it took, those of its hooks included."""
        if (server, tool) not in self._tools:
            if len(self._tools) >= MOST_TOOLS or len(tool) > LONGEST_NAME:
                tool = OTHER
            self._tools.add((server, tool))
        self._calls[server, tool, decision or "none", result] += 1
        self._hook_seconds.setdefault(server, Histogram()).add(hook_seconds)
        if result != "refused":
            self._server_seconds.setdefault(server, Histogram()).add(max(seconds - hook_seconds, 0.0))

    def text(self, sessions: Counter[str], policy: str, *, draining: bool, bundle: PolicyBundle | None = None) -> str:
        """All of it. `sessions` are open now, by server; `policy` is the version in force, with this signed policy."""
        lines = [*self._service_lines()]
        add = lines.extend
        add(header("hookproxy_calls_total", "counter", "Calls that hooks, rules or limits judged."))
        names = ("server", "tool", "decision", "result")
        for key, count in sorted(self._calls.items()):
            lines.append(sample("hookproxy_calls_total", tuple(zip(names, key, strict=True)), count))
        for name, text, by_server in (
            ("hookproxy_hook_seconds", "Time that the hooks of a call took.", self._hook_seconds),
            ("hookproxy_server_seconds", "Time that a forwarded call took without its hooks.", self._server_seconds),
        ):
            add(header(name, "histogram", text))
            for server, histogram in sorted(by_server.items()):
                add(histogram.lines(name, (("server", server),)))
        for name, kind, text, label, counts in (
            ("hookproxy_sessions", "gauge", "Open sessions.", "server", sessions),
            ("hookproxy_sessions_refused_total", "counter", "Sessions not opened.", "server", self.refused_sessions),
            ("hookproxy_server_memory_bytes", "gauge", "Memory of servers' processes.", "server", self.server_memory),
            (
                "hookproxy_servers_ended_total",
                "counter",
                "Server processes ended for their memory.",
                "server",
                self.ended_for_memory,
            ),
            ("hookproxy_http_refused_total", "counter", "HTTP requests refused.", "status", self.refused_requests),
            (
                "hookproxy_shared_dropped_total",
                "counter",
                "Messages of shared servers that certainly belonged to no session.",
                "server",
                self.dropped_messages,
            ),
            ("hookproxy_reloads_total", "counter", "Attempts to change the policy.", "outcome", self.reloads),
        ):
            add(header(name, kind, text))
            add(sample(name, ((label, key),), count) for key, count in sorted(counts.items()))
        add(header("hookproxy_sessions_waiting", "gauge", "Sessions that wait for room."))
        lines.append(sample("hookproxy_sessions_waiting", (), self.waiting_sessions))
        add(header("hookproxy_policy_info", "gauge", "The version of the policy in force."))
        lines.append(sample("hookproxy_policy_info", _policy_labels(policy, bundle), 1))
        if self.policy_updates is not None:
            add(self.policy_updates.lines(bundle))
        add(header("hookproxy_sandbox", "gauge", "What confines the processes of a server; off: nothing."))
        kinds = sorted(self.sandboxes.items())
        add(sample("hookproxy_sandbox", (("server", server), ("kind", kind)), 1) for server, kind in kinds)
        add(header("hookproxy_sandbox_limits", "gauge", "What holds servers to their memory and processes."))
        add(sample("hookproxy_sandbox_limits", (("kind", kind),), 1) for kind in (self.sandbox_limits,) if kind)
        add(header("hookproxy_draining", "gauge", "1 while the gateway ends."))
        lines.append(sample("hookproxy_draining", (), int(draining)))
        add(header("hookproxy_policy_changed_files", "gauge", "Files that have changed since the policy was read."))
        lines.append(sample("hookproxy_policy_changed_files", (), self.policy_changed))
        lines += self._audit_lines()
        if self.store_up is not None:
            add(header("hookproxy_store_up", "gauge", "1 while the store can be reached."))
            lines.append(sample("hookproxy_store_up", (), int(self.store_up)))
            add(header("hookproxy_store_failures_total", "counter", "What the store was to do and did not."))
            lines.append(sample("hookproxy_store_failures_total", (), self.store_failures))
        if self.audit_unsent is not None:
            add(header("hookproxy_audit_sent_total", "counter", "Lines of the audit that the collector has taken."))
            lines.append(sample("hookproxy_audit_sent_total", (), self.audit_sent))
            add(header("hookproxy_audit_unsent_bytes", "gauge", "Bytes of the audit that are still to be sent."))
            lines.append(sample("hookproxy_audit_unsent_bytes", (), self.audit_unsent()))
        return "\n".join([*lines, ""])

    def _service_lines(self) -> Iterator[str]:
        """Which service it is: the form of OpenTelemetry's resources in Prometheus."""
        if self.instance:
            yield from header("target_info", "gauge", "The service, by the names that its spans and its audit have.")
            service = (("service_name", "hookproxy"), ("service_instance_id", self.instance))
            yield sample("target_info", (*service, ("service_version", __version__)), 1)

    def _audit_lines(self) -> Iterator[str]:
        yield from header("hookproxy_audit_up", "gauge", "1 while the audit can be written.")
        yield sample("hookproxy_audit_up", (), int(self.audit_up))
        for name, text, count in (
            ("written", "Lines of the audit that are in its files.", self.audit_written),
            ("failed", "Tries to write the audit that failed; waiting lines are tried again.", self.audit_failed),
            ("lost", "Lines of the audit that will never be in its files.", self.audit_lost),
            ("refused", "Calls refused because they could not be recorded.", self.audit_refused),
        ):
            yield from header(f"hookproxy_audit_{name}_total", "counter", text)
            yield sample(f"hookproxy_audit_{name}_total", (), count)
        if self.audit_unsigned is not None:
            yield from header("hookproxy_audit_unsigned_lines", "gauge", "Lines that wait for a signed checkpoint.")
            yield sample("hookproxy_audit_unsigned_lines", (), self.audit_unsigned())


class PolicyUpdateCounts:
    """How asking the source of a signed policy has gone."""

    def __init__(self) -> None:
        self.failures = 0
        """How often nothing usable has come, since the start."""
        self.checked = 0.0
        """When the source has said last what is in force, in seconds since 1970; 0: never."""

    def lines(self, bundle: PolicyBundle | None) -> Iterator[str]:
        """The samples."""
        text = "Attempts to fetch the signed policy that gave nothing usable."
        yield from header("hookproxy_policy_failures_total", "counter", text)
        yield sample("hookproxy_policy_failures_total", (), self.failures)
        if self.checked:
            text = "Seconds since the source of the signed policy has said last what is in force."
            yield from header("hookproxy_policy_age_seconds", "gauge", text)
            yield sample("hookproxy_policy_age_seconds", (), round(max(time.time() - self.checked, 0.0), 3))
        if bundle is not None:
            text = "When the signed policy in force expires, in seconds since 1970."
            yield from header("hookproxy_policy_expires_timestamp_seconds", "gauge", text)
            yield sample("hookproxy_policy_expires_timestamp_seconds", (), bundle.expires)


def _policy_labels(policy: str, bundle: PolicyBundle | None) -> Labels:
    """The version of the files that were read; with a signed policy its own, and that of all files beside it."""
    if bundle is None:
        return (("version", policy),)
    version, digest = str(bundle.version), bundle.digest
    return (("version", version), ("ring", bundle.ring), ("digest", digest), ("policy", policy))


def header(name: str, kind: str, text: str) -> Iterable[str]:
    """The lines before the samples of a metric."""
    return (f"# HELP {name} {text}", f"# TYPE {name} {kind}")


def sample(name: str, labels: Labels, value: float) -> str:
    """One line."""
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
