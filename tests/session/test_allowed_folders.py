"""Which roots of an agent reach its server by `[roots]`: a place is judged, however its address is spelled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookproxy.model.settings import RootsRule, Settings
from hookproxy.session.allowed_folders import AllowedFolders, roots_of
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig

pytestmark = pytest.mark.anyio

ASK = b'{"jsonrpc":"2.0","id":"s","method":"roots/list"}\n'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`ok` is allowed, `ok/out` leads out of it, and `in` leads into it."""
    (tmp_path / "ok" / "a b").mkdir(parents=True)
    (tmp_path / "okay").mkdir()
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "ok" / "out").symlink_to("../other/deep")
    (tmp_path / "in").symlink_to("ok")
    return tmp_path


@pytest.mark.parametrize(
    "address",
    [
        "file://{}/ok",
        "file://{}/ok/",
        "FILE://{}/ok",
        "file:{}/ok/a%20b",
        "file://LOCALHOST{}/ok/a%20b/new",
        "file://{}/in/a%20b",
        "file://{}/other/../ok",
        "file://{}/other/%2e%2e/ok/x",
    ],
)
def test_a_place_in_an_allowed_folder_is_allowed_however_it_is_spelled(folder: Path, address: str) -> None:
    (folder / "other" / "%2e%2e").symlink_to("..")  # for readers that decode nothing
    assert AllowedFolders([str(folder / "ok")]).hold(address.format(folder))
    assert AllowedFolders([str(folder / "in")]).hold(address.format(folder))


@pytest.mark.parametrize(
    "address",
    [
        "file://{}",
        "file://{}/okay",
        "file://{}/other",
        "file://{}/OK",
        "file://{}/ok/..",
        "file://{}/ok/%2e%2E/other",
        "file://{}/ok/%252e%252e/other",
        "file://{}/ok%2f..%2fother",
        "file://{}/ok/..%5cother",
        "file://{}/ok\\..\\other",
        "file://{}/ok/out",
        "file://{}/ok/out/../x",
        "file://{}/ok/x%00/../..",
        "file://{}/ok/\t../x",
        " file://{}/ok",
        "file://evil.example{}/ok",
        "file:////evil.example{}/ok",
        "file://{}/ok?x",
        "file://{}/ok#x",
        "file://{}/ok%25252525252e",
        "https://{}/ok",
        "{}/ok",
        "file:ok",
        "file://{}/ok/" + "x" * 5000,
        "",
    ],
)
def test_what_some_reader_takes_for_another_place_is_not_allowed(folder: Path, address: str) -> None:
    assert not AllowedFolders([str(folder / "ok")]).hold(address.format(folder))


def test_a_link_is_followed_whenever_an_agent_names_it(folder: Path) -> None:
    allowed, address = AllowedFolders([str(folder / "ok")]), f"file://{folder}/in"
    assert allowed.hold(address)
    (folder / "in").unlink()
    (folder / "in").symlink_to("other")
    assert not allowed.hold(address)


def test_what_several_files_say_holds_together(folder: Path) -> None:
    ok, deep = str(folder / "ok"), str(folder / "ok" / "a b")
    assert roots_of(RootsRule()) is None
    both = roots_of(RootsRule(None, ((ok,), (deep,))))
    assert both is not None
    line = answer(f"file://{ok}", f"file://{ok}/a%20b")
    assert uris(both.from_agent(line, {"result": b"", "id": b"1"}).line) == [f"file://{ok}/a%20b"]  # type: ignore[dict-item]
    given = roots_of(RootsRule(((f"file://{ok}", "ok"), ("file:///etc", "etc")), ((ok,),)))
    assert given is not None
    assert uris(given.response(b"1")) == [f"file://{ok}"]


def answer(*addresses: str) -> bytes:
    roots = ", ".join(f'{{"uri" : {json.dumps(address)}}}' for address in addresses)
    return f'{{"jsonrpc":"2.0","id":"s", "result":{{"roots":[{roots}], "x":1.0}}}}\n'.encode()


def uris(line: bytes) -> list[str]:
    result: dict[str, Any] = json.loads(line)["result"]
    return [root["uri"] for root in result["roots"]]


# --- in a session ---


async def asked(run: Rig, said: bytes) -> bytes:
    await run.server.send(ASK)
    assert await run.agent.line() == ASK
    await run.agent.send(said)
    return await run.server.line()


async def test_a_fixed_list_stands_for_the_agents_roots_where_nothing_else_is_judged() -> None:
    given = ("file:///a", "a")
    async with rig(settings=Settings(roots=RootsRule((given,)))) as run:
        capabilities = {"capabilities": {"roots": {"listChanged": True}}, "protocolVersion": "2025-11-25"}
        await run.agent.send(json.dumps({"id": 1, "method": "initialize", "params": capabilities}).encode() + b"\n")
        assert (await run.server.message())["params"]["capabilities"] == {"roots": {}}
        said = {"x": {"roots": [{"uri": "file:///etc"}]}}
        params = {"name": "t", "inputResponses": said, "requestState": "s"}
        await run.agent.send(json.dumps({"id": 2, "method": "tools/call", "params": params}).encode() + b"\n")
        got = (await run.server.message())["params"]["inputResponses"]
        assert got == {"x": {"roots": [{"uri": "file:///a", "name": "a"}]}}


async def test_that_changes_of_roots_do_not_count_is_reported_once(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig(settings=Settings(roots=RootsRule(()), audit_file=str(audit))) as run:
        for _ in range(3):
            await run.agent.send(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}\n')
        await run.agent.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert b"ping" in await run.server.line()
        assert [line for line in run.reports if "about its roots" in line] == [
            "dropped the agent's notifications about its roots: the configuration says what they are"
        ]
    assert len(audit.read_text().splitlines()) == 1


async def test_roots_that_are_not_allowed_are_cut_out_and_the_audit_has_both_lists(folder: Path) -> None:
    audit = folder / "audit.jsonl"
    settings = Settings(roots=RootsRule(None, ((str(folder / "ok"),),)), audit_file=str(audit))
    good, bad = f"file://{folder}/ok/a%20b", f"file://{folder}/ok/out"
    async with rig(settings=settings) as run:
        passing = answer(good)
        assert await asked(run, passing) == passing
        assert await asked(run, answer(bad, good, "file:///etc")) == answer(good)
        assert await asked(run, answer("file:///etc")) == answer()
        changed = b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}\n'
        await run.agent.send(changed)
        assert await run.server.line() == changed
        refused = b'{"jsonrpc":"2.0","id":"s","error":{"code":-32603,"message":"no"}}\n'
        assert await asked(run, refused) == refused
    notes = [json.loads(line)["note"] for line in audit.read_text().splitlines()]
    assert notes == [
        f"the agent gave the roots {good}; the server got {good}",
        f"the agent gave the roots {bad}, {good}, file:///etc; the server got {good}",
        "the agent gave the roots file:///etc; the server got none",
    ]


@pytest.mark.parametrize(
    "result",
    [
        '{"Roots":[{"uri":"file:///etc"}]}',
        '{"roots":[],"ROOTS":[{"uri":"file:///etc"}]}',
        '{"roots":[{"uri":"file:///etc"}],"roots":[]}',
        '{"roots":{"uri":"file:///etc"}}',
        '{"roots":[{"uri":"OK","uri":"file:///etc"}]}',
        '{"roots":[{"uri":"OK","URI":"file:///etc"}]}',
        '{"roots":[{"uri":["file:///etc"]},{"x":"file:///etc"},"file:///etc"]}',
    ],
)
async def test_what_is_unclear_reaches_no_server(folder: Path, result: str) -> None:
    settings = Settings(roots=RootsRule(None, ((str(folder / "ok"),),)))
    text = result.replace("OK", f"file://{folder}/ok")
    async with rig(settings=settings) as run:
        await run.server.send(ASK)
        await run.agent.line()
        await run.agent.send(f'{{"jsonrpc":"2.0","id":"s","result":{text}}}\n'.encode())
        await run.agent.send(b'{"jsonrpc":"2.0","method":"notifications/x"}\n')
        seen = b""
        while b"notifications/x" not in seen:
            seen += await run.server.line()
        assert b"etc" not in seen


async def test_in_the_next_round_of_a_call_roots_are_judged_alike(folder: Path) -> None:
    settings = Settings(roots=RootsRule(None, ((str(folder / "ok"),),)))
    meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    params = '{"name":"t","inputResponses":{"a":%s,"b":{"x":1}},%s}'
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + "}\n"
    good = f'{{"uri":"file://{folder}/ok"}}'
    said = f'{{"roots":[{{"uri":"file:///etc"}},{good}]}}'
    async with rig(settings=settings) as run:
        await run.agent.send((line % (said, meta)).encode())
        assert await run.server.line() == (line % (f'{{"roots":[{good}]}}', meta)).encode()


async def test_a_server_that_may_know_no_roots_learns_that_there_are_none() -> None:
    async with rig(settings=Settings(roots=RootsRule(()))) as run:
        await run.server.send(ASK)
        assert json.loads(await run.server.line())["error"]["code"] == -32601
