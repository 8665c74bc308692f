"""What a gateway counts, as Prometheus reads it."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from hookproxy.gateway.metrics import LONGEST_NAME, MOST_TOOLS, Histogram, Metrics, PolicyUpdateCounts, sample
from hookproxy.model.policy_source import PolicyBundle


def text_of(metrics: Metrics) -> list[str]:
    return metrics.text(Counter({"db": 2}), "abc", draining=False).splitlines()


def test_a_call_is_counted_by_server_tool_decision_and_result() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.note_call("db", "read", "allow", "ok", 0.02, 0.004)
    metrics.note_call("db", "read", "", "refused", 0.001, 0.001)
    lines = text_of(metrics)
    assert 'hookproxy_calls_total{server="db",tool="read",decision="allow",result="ok"} 2' in lines
    assert 'hookproxy_calls_total{server="db",tool="read",decision="none",result="refused"} 1' in lines
    assert 'hookproxy_hook_seconds_count{server="db"} 3' in lines
    assert 'hookproxy_server_seconds_count{server="db"} 2' in lines  # a refused call reaches no server
    assert 'hookproxy_sessions{server="db"} 2' in lines
    assert 'hookproxy_policy_info{version="abc"} 1' in lines
    assert "hookproxy_draining 0" in lines


def test_agents_cannot_make_metrics_grow_with_names_of_tools() -> None:
    metrics = Metrics()
    for number in range(2 * MOST_TOOLS):
        metrics.note_call("db", f"tool{number}", "allow", "ok", 0.0, 0.0)
    calls = [line for line in text_of(metrics) if line.startswith("hookproxy_calls_total{")]
    assert len(calls) == MOST_TOOLS + 1
    assert f'hookproxy_calls_total{{server="db",tool="other",decision="allow",result="ok"}} {MOST_TOOLS}' in calls


def test_agents_cannot_make_metrics_grow_with_long_names() -> None:
    metrics = Metrics()
    for number in range(10):
        metrics.note_call("db", f"tool{number}".ljust(LONGEST_NAME + 1, "x"), "allow", "ok", 0.0, 0.0)
    metrics.note_call("db", "x" * LONGEST_NAME, "allow", "ok", 0.0, 0.0)
    calls = [line for line in text_of(metrics) if line.startswith("hookproxy_calls_total{")]
    assert len(calls) == 2
    assert 'hookproxy_calls_total{server="db",tool="other",decision="allow",result="ok"} 10' in calls


@pytest.mark.parametrize("name", ['a"} 1\nevil 7', "a\\", "a\r\nb", "a\u2028b"])
def test_a_name_cannot_add_a_line_or_a_label(name: str) -> None:
    line = sample("m", (("tool", name),), 1)
    assert "\n" not in line
    assert line.endswith('"} 1')
    inner = line[len('m{tool="') : -len('"} 1')]
    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")


def test_buckets_count_all_times_up_to_their_bound() -> None:
    histogram = Histogram()
    for seconds in (0.001, 0.0011, 100.0):
        histogram.add(seconds)
    lines = list(histogram.lines("m", ()))
    assert 'm_bucket{le="0.001"} 1' in lines
    assert 'm_bucket{le="0.0025"} 2' in lines
    assert 'm_bucket{le="60.0"} 2' in lines
    assert 'm_bucket{le="+Inf"} 3' in lines
    assert "m_count 3" in lines


def test_a_signed_policy_is_named_by_version_ring_and_digest_with_what_its_source_has_said() -> None:
    metrics, bundle = Metrics(), PolicyBundle(12, "canary", "d1", 1800000000.0)
    metrics.policy_updates = PolicyUpdateCounts()
    metrics.policy_updates.failures = 3
    lines = metrics.text(Counter(), "abc", draining=False, bundle=bundle).splitlines()
    assert 'hookproxy_policy_info{version="12",ring="canary",digest="d1",policy="abc"} 1' in lines
    assert "hookproxy_policy_failures_total 3" in lines
    assert "hookproxy_policy_expires_timestamp_seconds 1800000000.0" in lines
    assert "hookproxy_policy_age_seconds" not in "".join(lines)  # it has never said anything
    metrics.policy_updates.checked = time.time() - 10
    lines = metrics.text(Counter(), "abc", draining=False).splitlines()
    age = next(line for line in lines if line.startswith("hookproxy_policy_age_seconds "))
    assert 10 <= float(age.split()[1]) < 600
