"""The tables of cases/ for the systems whose hooks decide mostly by their exit status; any output gives a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hookproxy.dialects.agent_side import names as agent_names
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission
from tests.dialects.calls import inputs, program, read, text_outcome
from tests.dialects.tables import agents, failing, names, result, table
from tests.dialects.tables import verdict as expected_verdict

FOLDER: Final = Path(__file__).parent
ALL: Final = names()
"""Each table of cases, and its dialect."""
PLAYED: Final = frozenset(
    stem
    for stem in ALL
    for path in (FOLDER / stem).glob("*.py")
    if f'CASES = table("{stem}")' in path.read_text("utf-8")
)
"""The tables that tests of one dialect play in their own way."""
TABLES: Final = {name: table(stem) for stem, name in ALL.items() if stem not in PLAYED}
OUTPUT: Final = [(name, row) for name, rows in TABLES.items() for row in rows["output"]]
INPUT: Final = [(name, row) for name, rows in TABLES.items() for row in rows["input"]]


def test_every_dialect_has_a_table_and_every_table_a_dialect() -> None:
    assert sorted(ALL.values()) == [name for name in DIALECTS if "@" not in name]


def test_each_table_says_what_failing_hooks_do_and_what_its_agent_gives() -> None:
    assert failing().keys() == DIALECTS.keys()
    assert agents().keys() == set(agent_names())


def row_id(value: object) -> str:
    return value if isinstance(value, str) else str(value["behaviour"]) if isinstance(value, dict) else ""


def spec(name: str, row: dict[str, Any]) -> HookSpec:
    return HookSpec(
        name,
        "f",
        Event(row["event"]),
        "guard.sh",
        shell="guard.sh",
        timeout=60,
        event_name=row.get("event_name", ""),
        traits=frozenset(row.get("traits", ())),
    )


@pytest.mark.parametrize(("name", "row"), OUTPUT, ids=row_id)
def test_output_gives_the_verdict_of_the_table(name: str, row: dict[str, Any]) -> None:
    assert DIALECTS[name].read_output(spec(name, row), result(row)) == expected_verdict(row)


@pytest.mark.parametrize(("name", "row"), INPUT, ids=row_id)
def test_a_hook_gets_the_input_of_the_table(name: str, row: dict[str, Any], tmp_path: Path) -> None:
    event = Event(row["event"])
    outcome = text_outcome(row["result"], failed=event is Event.POST_TOOL_USE_FAILURE) if "result" in row else None
    arguments = json.loads(row.get("arguments", "{}"))
    hooks = program(tmp_path / row["file"]) if DIALECTS[name].executables else read(name, row["file"])
    found = inputs(hooks, row.get("tool", ""), arguments, event, outcome, row.get("trigger", ""))
    assert [one.document for one in found] == [json.loads(text) for text in row["documents"]]
    assert all(dict(one.env) == row.get("env", {}) for one in found)


@pytest.mark.parametrize("name", TABLES)
def test_every_row_names_its_behaviour_and_source(name: str) -> None:
    for rows in (TABLES[name]["output"], TABLES[name]["input"]):
        assert all(row["behaviour"] and row["source"] for row in rows)
        assert len({(row["event"], row["behaviour"]) for row in rows}) == len(rows)


@pytest.mark.parametrize("name", TABLES)
def test_every_event_has_an_input_row(name: str) -> None:
    named = " ".join(row["file"] for row in TABLES[name]["input"])
    assert all(event in named for event in DIALECTS[name].events)


KEYS: Final = st.sampled_from([
    "decision", "reason", "permissionDecision", "hookSpecificOutput", "cancel", "review", "contextModification",
    "context", "errorMessage", "overrideInput", "shouldContinue", "halt", "updated_input", "version", "updatedInput",
    "additionalContext", "permissionDecisionReason", "continue", "stopReason", "permission", "updated_mcp_tool_output",
    "additional_context", "hookEventName", "agent_message",
])  # fmt: skip
LEAVES: Final = (
    st.sampled_from(["allow", "deny", "block", "approve"]) | st.none() | st.booleans() | st.integers() | st.floats()
)
VALUES: Final = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=8)
OBJECTS: Final = st.dictionaries(KEYS, VALUES).map(lambda value: json.dumps(value).encode())


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@given(
    code=st.integers(-70, 300) | st.sampled_from([0, 1, 2, 49]),
    ended=st.sampled_from(Ended),
    stdout=st.binary() | OBJECTS | st.tuples(st.binary(max_size=5), OBJECTS, st.binary(max_size=5)).map(b"".join),
    stderr=st.binary(),
    cut=st.booleans(),
)
def test_any_output_gives_a_verdict(
    name: str, code: int, ended: Ended, stdout: bytes, stderr: bytes, cut: bool
) -> None:
    dialect = DIALECTS[name]
    for event_name, event in dialect.events.items():
        note(event_name)
        one = HookSpec(name, "f", event, "guard.sh", shell="guard.sh", timeout=60, event_name=event_name)
        verdict = dialect.read_output(one, HookResult(ended, code, stdout, stderr, cut=cut))
        assert verdict.failure == verdict.failure.strip()
        assert len(verdict.failure) < 500
        if verdict.failure:
            assert verdict.permission is not Permission.ALLOW
        if ended is not Ended.EXITED:
            assert verdict.failure or verdict.permission is Permission.DENY or verdict.stop
        if verdict.arguments is not None:
            assert isinstance(json.loads(verdict.arguments), dict)
            assert event is Event.PRE_TOOL_USE
            assert verdict.permission is not Permission.DENY


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "stdout",
    [
        b'{"a":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
        b'{"a":' * 1_000_000,
        b"{" * 1_000_000,
        b'{"cancel":\n' * 100_000,
        b"{" + b"\xff" * 10 + b"}",
        b"HOOK_CONTROL\t{" * 10_000,
    ],
    ids=["lists", "objects", "braces", "lines", "no UTF-8", "controls"],
)
def test_malicious_output_is_never_an_approval(name: str, stdout: bytes) -> None:
    dialect = DIALECTS[name]
    one = HookSpec(name, "f", Event.PRE_TOOL_USE, "guard.sh", shell="guard.sh", timeout=60)
    verdict = dialect.read_output(one, HookResult(Ended.EXITED, 0, stdout))
    assert verdict.permission is None
    assert verdict.arguments is None


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("levels", [900, 3_000, 9_000, 40_000])  # what can be decoded differs between Pythons
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_output_of_any_depth_is_no_crash_and_never_an_approval(name: str, levels: int, opening: bytes) -> None:
    dialect = DIALECTS[name]
    one = HookSpec(name, "f", Event.PRE_TOOL_USE, "guard.sh", shell="guard.sh", timeout=60)
    deep = opening * levels + b"1" + (b"]" if opening == b"[" else b"}") * levels
    for holder in (b"%b", b'{"x":%b}', b'{"decision":%b}', b'{"hookSpecificOutput":%b}', b'{"permission":%b}'):
        verdict = dialect.read_output(one, HookResult(Ended.EXITED, 0, holder % deep))
        assert verdict.permission is not Permission.ALLOW
