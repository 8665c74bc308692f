"""InterceptionRecords of AGENT-HOOKS-0.1 (section 10.3): what the hooks of an event decided, and what followed from it.

A record has no content of the call: it is said where something was rewritten, and not to what.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json
from ..model.hooks import Ended, HookRun, HookSpec, Order
from . import agent_hooks_verdicts as verdicts
from .agent_hooks_verdicts import ABSENT, EVALUATE_ONLY, RESERVED, RESOLVER, Composition
from .dialect import Emitted

CONTEXT_INVALID: Final = f"{RESERVED}context_invalid"
_TRANSFORM_INVALID: Final = f"{RESERVED}transform_invalid"
_NO_INTERCEPTOR: Final = f"{RESERVED}no_interceptor"
_NAMED_REASON: Final = re.compile(rf"{RESERVED}\w+")
_MOST_MESSAGE: Final = 256
"""Bytes of a message."""

Wire = Mapping[str, object]
"""A verdict as a hook prints it."""
_Taken = tuple[int | None, Wire]
"""The verdict that counts, and the index of the hook whose it is; None: it is the host's own."""


class _Session(Struct):
    id: str


class _Context(Struct):
    """What a record has of an AgentContext."""

    interception_point: str
    timestamp: str
    sequence: int
    session: _Session
    target: msgspec.Raw


_CONTEXT: Final = msgspec.json.Decoder(_Context)


def verdict_of(run: HookRun, target: bytes = b"") -> Wire:
    """The verdict of a run as the standard has it: a failure is a denial with the standard's reason.

    `target`: what a rewrite is about that is not applied, because the hook is only evaluated.
    """
    spec, result = run.spec, run.result
    if ABSENT in spec.traits:
        return {"decision": "deny", "reason": _NO_INTERCEPTOR}
    if RESOLVER in spec.traits:
        return _resolved(run)
    again = verdicts.read_verdict(spec, result)
    if failure := run.verdict.failure or again.failure:
        return _failure(failure, rewrites=not again.failure)
    wire = _wire(verdicts.printed(result))
    path = _path(wire)
    if target and path is not None and not verdicts.leads_to_value(path, target):
        return {"decision": "deny", "reason": _TRANSFORM_INVALID}
    return wire


def _wire(printed: bytes) -> Wire:
    """A verdict, once it was found to be one. What it would write, and what it says about an approval, stay as they are
    spelled: that is all that may have numbers which not every reader takes."""
    members = raw_json.fields(printed)
    verbatim = ("transform", "approval")
    return {name: member if name in verbatim else raw_json.decoded(member) for name, member in members.items()}


def _path(wire: Wire) -> str | None:
    """Where a verdict rewrites; None: it does not."""
    transform = wire.get("transform")
    return raw_json.text(raw_json.fields(transform)["path"]) if isinstance(transform, msgspec.Raw) else None


def _failure(failure: str, *, rewrites: bool) -> Wire:
    named = _NAMED_REASON.search(failure)
    otherwise = _TRANSFORM_INVALID if rewrites else f"{RESERVED}interceptor_failed"
    return {"decision": "deny", "reason": named[0] if named else otherwise}


def _resolved(run: HookRun) -> Wire:
    """The verdict that a resolution has put in the place of the hooks' own."""
    verdict = run.verdict
    if verdict.failure:
        return _failure(verdict.failure, rewrites=verdict.answer == "approval")
    if verdict.answer == "rejection" and (named := _NAMED_REASON.match(verdict.reason)):
        return {"decision": "deny", "reason": named[0]}
    return _wire(bytes(raw_json.fields(verdicts.printed(run.result))["verdict"]))


def interception_record(event: Emitted, composition: Composition, provider: str | None) -> Mapping[str, object]:
    """The record of an event."""
    context = _CONTEXT.decode(event.document)
    specs = [spec for spec in event.specs if ABSENT not in spec.traits]
    evaluated = all(EVALUATE_ONLY in spec.traits for spec in event.specs)
    target = bytes(context.target) if evaluated else b""
    runs = sorted(event.runs, key=lambda run: _place(run, event.specs)) if composition.is_parallel else event.runs
    ran = [run for run in runs if run.result.ended is not Ended.NOT_STARTED or ABSENT in run.spec.traits]
    given = [(run, verdict_of(run, target)) for run in ran]
    own = [(specs.index(run.spec), run, wire) for run, wire in given if run.spec in specs]
    answers = [run.verdict.answer or "rejection" for run in runs if RESOLVER in run.spec.traits]
    decided_by, combined = _combined(given, specs, composition)
    if event.problem:
        decided_by, combined = None, {"decision": "deny", "reason": CONTEXT_INVALID}
    return {
        "interception_point": context.interception_point,
        "mode": EVALUATE_ONLY if evaluated else "enforce",
        "verdict": _projected(combined, [wire for _, wire in given]),
        "input_identity": event.input_identity,
        "enforced_identity": event.enforced_identity,
        "identity_provider": provider,
        "session_id": context.session.id,
        "sequence": context.sequence,
        "timestamp": context.timestamp,
        "decided_by": decided_by,
        "composition": composition.in_effect,
        "verdicts": [
            {"index": index, "name": run.spec.label}
            | {key: wire[key] for key in ("decision", "reason") if wire.get(key)}
            for index, run, wire in own
        ],
        "fold_truncated": len({index for index, _, _ in own}) < len(specs),
        **({"resolved_by": answers[-1]} if answers else {}),
        "interceptors_registered": len(specs),
    }


def _place(run: HookRun, specs: Sequence[HookSpec]) -> int:
    """Hooks that run at the same time end in any order; what was consulted ran after all of them."""
    return specs.index(run.spec) if run.spec in specs else len(specs)


def _combined(
    given: Sequence[tuple[HookRun, Wire]], specs: Sequence[HookSpec], composition: Composition
) -> tuple[int | None, Wire]:
    """The combined verdict of an event, and whose it was (section 7)."""
    taken: list[_Taken] = []
    consulted: int | None = None
    for run, wire in given:
        if RESOLVER not in run.spec.traits:
            fails_to_apply = wire.get("reason") in (_TRANSFORM_INVALID, _NO_INTERCEPTOR)
            taken.append((None if fails_to_apply else specs.index(run.spec), wire))
            continue
        consulted, _ = _winner(_synthesized(taken, composition))
        if wire["decision"] == "deny" or composition.order is not Order.PIPELINE_UNTIL_DENIED:
            return (None if wire.get("reason") == _TRANSFORM_INVALID else consulted), wire
        taken = [*((index, one) for index, one in taken if "approval" not in one), (consulted, wire)]
    index, wire = _winner(_synthesized(taken, composition))
    return (consulted if index is None and wire["decision"] == "allow" else index), wire


def _synthesized(taken: list[_Taken], composition: Composition) -> list[_Taken]:
    """The verdicts, or the denial that the host puts in their place (section 7.5)."""
    decisions = [wire["decision"] for _, wire in taken]
    failed = any(str(wire.get("reason") or "").startswith(RESERVED) for _, wire in taken)
    reason = asks = ""
    if composition.profile == "parallel/strictest" and decisions.count("transform") > 1 and "deny" not in decisions:
        reason, asks = "transform_conflict", composition.on_transform_conflict
    elif composition.profile == "parallel/unanimous" and set(decisions) - {"allow"} and not failed:
        reason, asks = "composition_disagreement", composition.on_disagreement
    if not reason:
        return taken
    approval: Wire = {"approval": {}} if asks == "approval" else {}
    return [(None, {"decision": "deny", "reason": f"{RESERVED}{reason}", **approval})]


def _winner(taken: Sequence[_Taken]) -> _Taken:
    """The verdict that counts: a denial before one that may be lifted, before the last rewrite."""
    denials = [one for one in taken if one[1]["decision"] == "deny"]
    plain = [one for one in denials if "approval" not in one[1]]
    transforms = [one for one in taken if one[1]["decision"] == "transform"]
    return next(iter((*plain, *denials, *reversed(transforms))), (None, {"decision": "allow"}))


def _projected(verdict: Wire, all_verdicts: Iterable[Wire]) -> Mapping[str, object]:
    """The verdict without what it would write, with the warnings and labels of all."""
    shown: dict[str, object] = {name: verdict[name] for name in ("decision", "reason", "evidence") if verdict.get(name)}
    if isinstance(message := verdict.get("message"), str):
        shown["message"] = _shortened(message)
    if "approval" in verdict:
        shown["approval"] = {}
    if (path := _path(verdict)) is not None:
        shown["transform"] = {"path": path}
    wires = list(all_verdicts)
    if warnings := _union(warning for wire in wires for warning in _listed(wire, "warnings")):
        shown["warnings"] = [
            {name: _shortened(text) if name == "message" else text for name, text in warning.items() if text}
            for warning in warnings
            if isinstance(warning, dict)
        ]
    permitting = [wire for wire in wires if wire["decision"] != "deny"]
    labels = _union(label for wire in permitting for label in _listed(wire, "result_labels"))
    if labels and verdict["decision"] != "deny":
        shown["result_labels"] = labels
    return shown


def _listed(wire: Wire, name: str) -> list[object]:
    listed = wire.get(name)
    return listed if isinstance(listed, list) else []


def _union(items: Iterable[object]) -> list[object]:
    """Each of them once, where it was seen first."""
    seen: list[object] = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen


def _shortened(text: str) -> str:
    raw = text.encode(errors="replace")
    if len(raw) <= _MOST_MESSAGE:
        return text
    return raw[: _MOST_MESSAGE - len("…".encode())].decode(errors="ignore") + "…"
