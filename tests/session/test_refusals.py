"""Law 3: no message of the agent is refused without an audit line, whatever it is and whoever refuses it."""

from __future__ import annotations

import ast
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hookproxy
from hookproxy.audit.records import NoteRecord, read
from hookproxy.audit.view.files import Filter
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Arguments, Settings
from tests.support.call_spellings import CARRIERS, SPELLINGS
from tests.support.examples import examples
from tests.support.proxy_rig import DIRECT_LOOP, group, hook, rig

pytestmark = pytest.mark.anyio

DENIES: Final = group(hook("exit 2", Event.PRE_TOOL_USE, "danger"), hook("exit 0", Event.PRE_TOOL_USE, "other"))
PING: Final = b'{"jsonrpc":"2.0","id":"p","method":"ping"}\n'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def refused(lines: bytes, **more: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:  # noqa: ANN401
    """What the agent gets for these lines from a server that is silent, and the lines of the audit."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "audit.jsonl"
        async with rig(DENIES, settings=Settings(audit_file=str(file), **more)) as proxied:
            await proxied.agent.send(lines)
            _, answered = await proxied.finish()
        recorded = file.read_bytes().splitlines() if file.exists() else []
    return [json.loads(one) for one in answered.splitlines()], [json.loads(one) for one in recorded]


def refusals(recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in recorded if one.get("result") == "refused" and one.get("decision") == "deny"]


@pytest.mark.slow
async def test_every_spelling_of_a_denied_call_has_as_many_audit_lines_as_refusals() -> None:
    wrong = []
    for spelling in SPELLINGS:
        answers, recorded = await refused(spelling.text)
        if not answers or len(refusals(recorded)) != len(answers):
            wrong.append(f"{spelling}: {len(answers)} refusals, but recorded {recorded}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', "id"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":[1]}}', "not an object"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{"a\\u0000":1}}}', "NUL"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a\\u0000b"}}', "NUL"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other"}}]', "batch"),
        (b'{"jsonrpc":"2.0","id":1,"Method":"ping","method":"ping"}', "Method"),
        (b'{"jsonrpc":"2.0","id":1,"method":"pi\\u0000ng"}', "NUL"),
        (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}', "cancellat"),
        (b"not JSON", "JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xff"}}', "UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 3000 + b"]" * 3000 + b"}", "deep"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":"' + b"x" * 200_000 + b'"}', "bytes"),
    ],
    ids=lambda value: value[:40].decode(errors="replace") if isinstance(value, bytes) else "",
)
async def test_what_is_refused_before_it_is_a_call_is_recorded_with_its_reason(line: bytes, why: str) -> None:
    (answer,), recorded = await refused(line + b"\n", max_message_bytes=100_000, audit_arguments=Arguments.FULL)
    (record,) = recorded
    assert (record["decision"], record["result"], record["cause"], record["server"]) == (
        "deny",
        "refused",
        "message",
        "files",
    )
    assert record["id"] == answer["id"]
    assert record["reason"] in answer["error"]["message"]
    assert record["note"] == f"refused a message of the agent: {record['reason']}"
    assert why.casefold() in record["reason"].casefold()
    if len(line) < 60_000:
        assert record["message"] == line.decode(errors="replace")


async def test_with_digests_or_secret_members_only_a_digest_of_the_message_is_recorded() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":{"token":"s3cret"}}\n'
    for more in (
        {"audit_arguments": Arguments.DIGEST},
        {"audit_arguments": Arguments.MASKED},
        {"audit_redact_keys": ("token",)},
    ):
        _, (record,) = await refused(line, **more)
        assert len(record["message_sha256"]) == 64
        assert "s3cret" not in json.dumps(record)
    _, (record,) = await refused(line, audit_redact=("s3cret",), audit_arguments=Arguments.FULL)
    assert "s3cret" not in json.dumps(record)
    assert "[redacted]" in record["message"]


async def test_the_view_of_denials_shows_refused_messages(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    async with rig(DENIES, settings=Settings(audit_file=str(file))) as proxied:
        await proxied.agent.send(b"[1\n")
        await proxied.agent.line()
        await proxied.finish()
    (record,) = read(str(file))
    assert isinstance(record, NoteRecord)
    assert (record.decision, record.message, record.cause) == ("deny", "[1", "message")
    assert Filter(decision="*deny").matches(record)
    assert not Filter(decision="allow").matches(record)
    assert not Filter(tool="other").matches(record)


async def test_a_refusal_that_cannot_be_recorded_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    async with rig(DENIES, settings=Settings(audit_file=str(tmp_path / "file" / "audit.jsonl"))) as proxied:
        await proxied.agent.send(b"[1\n")
        assert b"error" in await proxied.agent.line()
        assert any("the audit log cannot be written" in text for text in proxied.reports)
        await proxied.finish()


HOSTILE: Final = st.sampled_from([one.text for one in (*SPELLINGS, *CARRIERS)])


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A hostile line with some bytes replaced, removed or repeated."""
    line = bytearray(draw(HOSTILE)[:4000].replace(b"\n", b" ").strip())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(len(line) - 1, 0)))
        end = at + draw(st.integers(0, 6))
        line[at:end] = draw(
            st.sampled_from([b"", b'"', b"{", b"}", b"\\u0000", b",", b"\xff", b"1", bytes(line[at:end]) * 2])
        )
    return bytes(line) + b"\n"


@pytest.mark.slow
@examples(50)
@given(st.lists(mutated(), min_size=1, max_size=8))
def test_among_many_hostile_lines_as_many_are_recorded_as_are_refused(lines: list[bytes]) -> None:
    async def check() -> None:
        answers, recorded = await refused(b"".join(lines))
        assert len(refusals(recorded)) == len(answers), (lines, answers, recorded)

    anyio.run(check, backend=DIRECT_LOOP[0], backend_options=DIRECT_LOOP[1])


WRITES_REFUSALS: Final = {
    "session/proxy.py": "Proxy._refuse",
    "protocol/shared_messages.py": "refused",
    "transports/shared_server.py": "SessionChannel._refuse_lost",
    "transports/http/channel.py": "HttpChannel.write",
    "transports/http/agent_channel.py": "AgentChannel.post",
}
"""The functions that write the refusal of a message. Each of them notes it as well."""


@pytest.mark.slow
def test_the_refusal_of_a_message_is_written_only_where_it_is_recorded() -> None:
    folder = Path(hookproxy.__file__).parent
    found: dict[str, str] = {}
    for path in folder.rglob("*.py"):
        for name, function in _functions(ast.parse(path.read_text()), ""):
            calls = {_called(node) for node in ast.walk(function) if isinstance(node, ast.Call)}
            if "refused_message" in calls:
                found[os.fspath(path.relative_to(folder))] = name
                assert calls & {"note_refusal", "on_refused", "Send"}, name
    assert found == WRITES_REFUSALS


def _functions(tree: ast.AST, prefix: str) -> list[tuple[str, ast.AST]]:
    found: list[tuple[str, ast.AST]] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append((prefix + node.name, node))
        elif isinstance(node, ast.ClassDef):
            found += _functions(node, f"{node.name}.")
    return found


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
