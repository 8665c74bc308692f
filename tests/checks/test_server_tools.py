"""Listing the tools of real servers, friendly and hostile: whatever a server does, it is ended with its children."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import pytest

from hookproxy.checks.server_tools import ServerTools, list_tools
from hookproxy.model.errors import UserError
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LIMIT: Final = 30.0
"""Seconds for a server that does not hang."""


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def message(**members: object) -> str:
    """A shell command that prints a message."""
    return f"printf '%s\\n' {shlex.quote(json.dumps({'jsonrpc': '2.0', **members}))}"


def page(*names: str, number: int = 2, **members: object) -> str:
    return message(id=number, result={"tools": [{"name": name, "inputSchema": {}} for name in names], **members})


READ: Final = "read -r line"
CAPABILITIES: Final = {"capabilities": {"tools": {}}, "serverInfo": {"name": "Files", "version": "1"}}
BEGIN: Final = f"{READ}; {message(id=1, result={'protocolVersion': '2025-06-18', **CAPABILITIES})}; {READ}"
WAIT: Final = "cat >/dev/null"
"""Read on until the input ends, as servers do."""


SAME_PAGE: Final = (
    f"while {READ}; do n=$((n+1)); "
    """printf '{"id":%d,"result":{"tools":[],"nextCursor":"x"}}\\n' $((n+1)); done"""
)
NEW_PAGES: Final = (
    f"while {READ}; do n=$((n+1)); "
    """printf '{"id":%d,"result":{"tools":[],"nextCursor":"%d"}}\\n' $((n+1)) $n; done"""
)


async def listed(*script: str, seconds: float = LIMIT) -> ServerTools:
    return await list_tools(["sh", "-c", "; ".join(script)], os.environ, seconds)


async def failure(*script: str, seconds: float = LIMIT) -> UserError:
    with pytest.raises(UserError) as error:
        await listed(*script, seconds=seconds)
    return error.value


def names(found: ServerTools) -> list[str]:
    return [tool.name for tool in found.tools]


async def test_the_tools_and_the_name_of_a_server_are_listed() -> None:
    found = await listed(BEGIN, READ, page("look", "write"), WAIT)
    assert (names(found), found.server_info, found.noise) == (["look", "write"], "Files", 0)


async def test_the_server_gets_a_whole_handshake(tmp_path: Path) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    begin = BEGIN.replace(READ, f'{READ}; echo "$line" >>{log}')
    await listed(begin, f'{READ}; echo "$line" >>{log}', page("look"), WAIT)
    requests = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [one["method"] for one in requests] == ["initialize", "notifications/initialized", "tools/list"]
    assert requests[0]["params"]["clientInfo"]["name"] == "hookproxy"
    assert "id" not in requests[1]
    assert "cursor" not in requests[2]["params"]


async def test_all_pages_are_read() -> None:
    found = await listed(
        BEGIN,
        READ,
        page("a", nextCursor="x"),
        f'{READ}; [ "${{line#*\\"cursor\\":\\"x\\"}}" != "$line" ]',
        page("b", number=3),
        WAIT,
    )
    assert names(found) == ["a", "b"]


async def test_a_server_of_the_stateless_era_is_asked_without_a_handshake(tmp_path: Path) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    unknown = message(id=1, error={"code": -32601, "message": "no such method"})
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "Modern", "version": "2"}}
    found = await listed(
        READ, unknown, f'{READ}; echo "$line" >{log}', page("look", resultType="complete", _meta=meta), WAIT
    )
    assert (names(found), found.server_info) == (["look"], "Modern")
    request = json.loads((tmp_path / "log").read_text())
    assert request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


async def test_noise_notifications_and_requests_of_the_server_are_passed_over() -> None:
    ping, question = message(id="p", method="ping"), message(id=9, method="roots/list")
    answers = f'{READ}; [ "$line" = \'{{"jsonrpc":"2.0","id":"p","result":{{}}}}\' ] || exit 5; {READ}'
    found = await listed(
        BEGIN, READ, "echo Listening on stdio; echo", message(method="notifications/message", params={}),
        ping, question, answers, "echo '[1'", page("look"), WAIT,
    )  # fmt: skip
    assert (names(found), found.noise) == (["look"], 2)


async def test_a_server_that_declares_no_tools_and_lists_none_has_none() -> None:
    begin = BEGIN.replace('"tools": {}', "")
    found = await listed(begin, READ, message(id=2, error={"code": -32601, "message": "no tools"}), WAIT)
    assert names(found) == []


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (["exit 3"], "the server exited with status 3 before it had listed its tools"),
        (["kill -9 $$"], "the server was ended by signal 9 before it had listed its tools"),
        ([BEGIN, READ, "exec >&-", WAIT], "the server closed its input or output before it had listed its tools"),
        (
            [BEGIN, READ, message(id=2, error={"code": 1, "message": "broken \x1b[31m" + "x" * 9000}), WAIT],
            "the server answered tools/list with an error: broken \\x1b[31mxxx",
        ),
        ([BEGIN, READ, message(id=2, result={}), WAIT], "the server answered tools/list without a list of tools"),
        ([BEGIN, SAME_PAGE], "the server answers tools/list with the same page again and again"),
        ([BEGIN, NEW_PAGES], "the server lists its tools on more than 1000 pages"),
    ],
)  # fmt: skip
async def test_a_server_that_does_not_list_its_tools_is_an_error(script: Sequence[str], message: str) -> None:
    error = await failure(*script)
    assert error.message.startswith(message)
    assert len(error.message) < 1000
    assert error.status == 2


async def test_the_error_shows_the_end_of_the_servers_standard_error_harmlessly() -> None:
    error = await failure("printf 'first\\n\\033[31mno such module\\n' >&2; exit 1")
    assert error.hint.startswith("its standard error ends with: first \\x1b[31mno such module; the server's command")


async def test_the_error_of_a_python_server_shows_the_last_line_of_its_traceback() -> None:
    error = await failure("""python3 -c 'import json; json.loads("x")'; exit 1""")
    assert error.hint.startswith("its standard error ends with: json.decoder.JSONDecodeError: Expecting value: line 1")
    group = """python3 -c 'raise ExceptionGroup("two", [KeyError("HOME")])'; exit 1"""
    assert (await failure(group)).hint.startswith("its standard error ends with: KeyError: 'HOME'; the server's")


async def test_the_end_of_a_long_standard_error_begins_with_a_whole_line() -> None:
    error = await failure("for i in $(seq 300); do echo line $i; done >&2; exit 1")
    shown = error.hint.removeprefix("its standard error ends with: ").partition(";")[0]
    assert shown.startswith("line 2")
    assert shown.endswith(" line 300")
    assert len(shown) <= 500


@pytest.mark.parametrize("script", ["sleep 1000", "yes", "yes >&2"])
async def test_a_server_that_hangs_or_only_prints_is_ended_after_the_deadline(script: str) -> None:
    error = await failure(script, seconds=0.3)
    assert error.message == "the server has not listed its tools within 0.3 seconds"


async def test_a_server_whose_line_never_ends_is_ended_after_the_deadline_or_at_the_limit() -> None:
    error = await failure("yes | tr -d '\\n'", seconds=0.3)
    assert "within 0.3 seconds" in error.message or "bytes on one line" in error.message


async def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UserError) as error:
        await list_tools(["no-such-program", "x"], os.environ)
    assert str(error.value) == (
        "error: cannot start the server: command not found: no-such-program\n"
        "hint: install it, or give its full path; the server's command line is: no-such-program x"
    )


async def test_an_error_names_no_secret_of_the_command_line_and_none_that_the_server_prints() -> None:
    with pytest.raises(UserError) as error:
        await list_tools(["no-such-program", "--token", "hunter2xyz9"], os.environ)
    assert error.value.hint.endswith("no-such-program --token [masked: password]")
    with pytest.raises(UserError) as error:
        await list_tools(["no-such-program --token hunter2xyz9"], os.environ)
    assert "hunter2" not in str(error.value)
    ended = await failure("echo password=hunter2xyz9 >&2; exit 1")
    assert "hunter2" not in str(ended)


def alive(pid: int) -> bool:
    """Whether the process runs; what was killed and not reaped yet by its new parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ["lists", "fails", "hangs", "is cancelled"])
async def test_nothing_of_the_server_is_left_whatever_happens(tmp_path: Path, how: str) -> None:
    pid_file = tmp_path / "pid"
    stubborn = f"trap '' TERM HUP INT; sleep 1000 <&- >&- 2>&- & echo $$ $! >{shlex.quote(str(pid_file))}"
    rest = {"lists": [BEGIN, READ, page("look"), WAIT], "fails": ["exit 1"]}.get(how, ["echo started", "sleep 1000"])
    if how == "is cancelled":
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listed, stubborn, *rest)
            with anyio.fail_after(LIMIT):
                while not (pid_file.exists() and pid_file.read_text().endswith("\n")):
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    elif how == "lists":
        assert names(await listed(stubborn, *rest)) == ["look"]
    else:
        await failure(stubborn, *rest, seconds=2.0 if how == "hangs" else LIMIT)
    pids = [int(pid) for pid in pid_file.read_text().split()]
    with anyio.fail_after(LIMIT):
        while any(map(alive, pids)):
            await anyio.lowlevel.checkpoint()


async def test_no_descriptor_is_left_open() -> None:
    await listed(BEGIN, READ, page("look"), WAIT)
    before = os.listdir("/proc/self/fd")
    await listed(BEGIN, READ, page("look"), WAIT)
    await failure("exit 1")
    with pytest.raises(UserError):
        await list_tools(["no-such-program"], os.environ)
    assert len(os.listdir("/proc/self/fd")) == len(before)


async def test_what_its_texts_hide_is_told() -> None:
    tools = [{"name": "a\x1b", "description": "x\u200b<!-- -->"}, {"name": "b", "description": "plain"}]
    begin = message(id=1, result={**CAPABILITIES, "instructions": "\u202e"})
    found = await listed(READ, begin, READ, READ, message(id=2, result={"tools": tools}), WAIT)
    assert found.hidden == (
        "server: instructions has 1 bidirectional control",
        "tool a\\x1b: description has 1 invisible character",
        "tool a\\x1b: description has an HTML comment",
        "tool a\\x1b: name has a terminal's control sequence (ANSI)",
    )
