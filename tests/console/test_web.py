"""The pages over HTTP, from a real server on the loopback: who gets in, what they show, what they run."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from markupsafe import escape

from hookproxy.config.load import Loaded, load
from hookproxy.console.access import Access
from hookproxy.console.options import Options
from hookproxy.console.state import State
from hookproxy.console.web import Pages, serve
from hookproxy.live.messages import Action, Answer, AnswerTaken, Changes, Run
from tests.console.test_history import record
from tests.console.test_live_view import approval
from tests.end.agent import SERVER

pytestmark = pytest.mark.slow

TOML = """\
[permissions]
deny = ["delete_*"]

[[hooks.PreToolUse]]
matcher = "write_.*"
command = "cat >>ran; echo '<b>no</b>' >&2; exit 2"
"""


class Site:
    """A console in this test's event loop, and a browser without one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.access = Access()
        self.state = State()
        self.answers: list[tuple[str, Answer]] = []
        self.taken = AnswerTaken("q", True)
        (folder / "hookproxy.toml").write_text(TOML)
        (folder / "changed.toml").write_text(TOML.replace('"delete_*"', '"read"'))
        self.write_audit([record(number) for number in range(3)])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.host = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.cookie = f"hookproxy={self.access.cookie}"

    def write_audit(self, records: list[dict[str, object]]) -> None:
        (self.folder / "audit.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))

    def loaded(self, name: str = "hookproxy.toml") -> Loaded:
        return load(str(self.folder / name), [], None, {"HOME": str(self.folder)}, str(self.folder))

    async def answer(
        self, run: str, approval: str, action: Action, reason: str, place: str, arguments: str
    ) -> AnswerTaken:
        self.answers.append((run, Answer(approval, action, reason, place, arguments)))
        return self.taken

    def pages(self) -> Pages:
        environ = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        options = Options(
            self.loaded,
            environ,
            str(self.folder),
            str(self.folder / "audit.jsonl"),
            {"changed.toml": lambda: self.loaded("changed.toml")},
            SERVER,
            "lean",
        )
        return Pages(options, self.access, self.state, self.answer)

    async def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        return await self.send("GET", f"/{self.access.folder}/{path}", None, {"Cookie": self.cookie, **headers})

    async def post(self, path: str, token: str | None = None, **form: str) -> tuple[int, str, dict[str, str]]:
        body = urlencode({"token": self.access.form_token if token is None else token, **form})
        headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        return await self.send("POST", f"/{self.access.folder}/{path}", body, headers)

    async def send(
        self, method: str, path: str, body: str | bytes | None, headers: dict[str, str]
    ) -> tuple[int, str, dict[str, str]]:
        def ask() -> tuple[int, str, dict[str, str]]:
            connection = http.client.HTTPConnection(self.host, timeout=30)
            headers.setdefault("Host", self.host)
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            found = response.status, response.read().decode(), {k.lower(): v for k, v in response.getheaders()}
            connection.close()
            return found

        with anyio.fail_after(30):
            return await anyio.to_thread.run_sync(ask)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Site]:
    made = Site(folder)
    started = anyio.Event()

    async def note() -> None:
        started.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, made.pages(), made.listener, note)
        await started.wait()
        yield made
        tasks.cancel_scope.cancel()
    made.listener.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with running(tmp_path) as made:
        yield made


async def test_without_the_cookie_every_page_is_refused(site: Site) -> None:
    for path in ("/", f"/{site.access.folder}/", f"/{site.access.folder}/events", "/static/console.js", "/history"):
        status, text, headers = await site.send("GET", path, None, {})
        assert (status, "hookproxy console has printed" in text) == (401, True)
        assert "set-cookie" not in headers


async def test_the_first_address_gives_the_cookie_and_goes_on(site: Site) -> None:
    status, text, headers = await site.send("GET", f"/?token={site.access.token}", None, {})
    assert (status, headers["set-cookie"]) == (200, site.access.set_cookie)
    assert f'content="0; url=/{site.access.folder}/"' in text
    assert site.access.token not in text


async def test_another_host_is_refused(site: Site) -> None:
    assert (await site.get("", Host="evil.example"))[0] == 421
    assert (await site.send("GET", f"/?token={site.access.token}", None, {"Host": "evil.example"}))[0] == 421


async def test_every_response_forbids_what_no_page_needs(site: Site) -> None:
    responses = [await site.get(path) for path in ("", "history", "policy", "try", "no-such-page", "static/console.js")]
    responses.append(await site.send("GET", "/", None, {}))
    for _, _, headers in responses:
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"


async def test_no_page_loads_anything_from_elsewhere_or_has_a_script_inside(site: Site) -> None:
    for path in ("", "history", "history-charts", "policy", "policy?rule=deny&name=x", "try", "replay"):
        _, text, _ = await site.get(path)
        assert not re.findall(r'(?:src|href|action)="(?:https?:|//)', text)
        assert re.findall(r"<script(?! src=\"static/console.js\" defer>)", text) == []
        assert " style=" not in text
        assert not re.findall(r"<[^>]* on[a-z]+=", text)


async def test_a_form_without_our_token_or_origin_runs_nothing(site: Site) -> None:
    call = {"tool": "write_file", "arguments": "{}"}
    assert (await site.post("try", token="wrong", **call))[0] == 403
    body = urlencode({"token": site.access.form_token, **call})
    path = f"/{site.access.folder}/try"
    assert (await site.send("POST", path, body, {"Cookie": site.cookie}))[0] == 403
    assert (await site.send("POST", path, body, {"Cookie": site.cookie, "Origin": "http://127.0.0.1:1"}))[0] == 403
    assert (await site.send("POST", path, body, {"Origin": f"http://{site.host}"}))[0] == 401
    assert (await site.get(f"try?{body}"))[0] == 200
    assert not (site.folder / "ran").exists()


async def test_a_form_that_is_too_long_is_refused(site: Site) -> None:
    headers = {"Cookie": site.cookie, "Origin": f"http://{site.host}", "Content-Length": "99999999"}
    assert (await site.send("POST", f"/{site.access.folder}/try", "x", headers))[0] == 413


async def test_a_tried_call_shows_what_each_hook_did_as_text(site: Site) -> None:
    _, text, _ = await site.post("try", server="files", tool="write_file", arguments='{"a": "<i>"}')
    assert "refused" in text
    assert "&lt;b&gt;no&lt;/b&gt;" in text
    assert "<b>no</b>" not in text
    assert json.loads((site.folder / "ran").read_text())["tool_input"] == {"a": "<i>"}


@pytest.mark.parametrize("arguments", ["not json", "[1]", "{", '{"a": 1'])
async def test_arguments_that_are_no_object_are_an_error_and_stay_in_the_form(site: Site, arguments: str) -> None:
    status, text, _ = await site.post("try", tool="read", arguments=arguments)
    assert status == 400
    assert 'role="alert"' in text
    assert f">{escape(arguments)}</textarea>" in text


async def test_a_form_that_comes_back_has_its_lines_as_they_were_typed(site: Site) -> None:
    typed = '{\n  "a": 1\n}'
    _, text, _ = await site.post("try", tool="read", arguments=typed.replace("\n", "\r\n"))  # as browsers send it
    assert f">{escape(typed)}</textarea>" in text


async def test_a_replay_shows_the_decisions_that_differ_side_by_side(site: Site) -> None:
    since = {"since": "all", "newest": "100"}
    _, text, _ = await site.post("replay", configuration="1", runs="yes", **since)
    assert "3 calls replayed, 3 would be decided differently" in text
    assert text.count("As recorded") == text.count("As it would be") == 3
    _, text, _ = await site.post("replay", configuration="0", runs="yes", **since)
    assert "3 calls replayed, none would be decided differently" in text


async def test_rules_are_tried_on_the_page_and_code_is_not(site: Site) -> None:
    members = {"configuration": "0", "runs": "yes", "since": "all", "newest": "2"}
    _, text, _ = await site.post("replay", rules='[permissions]\ndeny = ["read"]', **members)
    assert "2 calls replayed, 2 would be decided differently" in text
    assert "Older calls" in text
    evil = '[[hooks.PreToolUse]]\ncommand = "touch evil"'
    _, text, _ = await site.post("replay", rules=evil, **members)
    assert "only [permissions] can be tried here" in text
    assert not (site.folder / "evil").exists()


async def test_a_replay_needs_the_word_that_hooks_may_run(site: Site) -> None:
    site.write_audit([record(1, tool="write_file")])
    _, text, _ = await site.post("replay", configuration="0", since="all", newest="5")
    assert "nothing was replayed" in text
    assert not (site.folder / "ran").exists()


async def test_the_policy_page_shows_hooks_and_rules_with_their_places(site: Site) -> None:
    _, text, _ = await site.get("policy?rule=ask&name=push_*")
    assert f"{site.folder}/hookproxy.toml:4" in text
    assert "permissions.deny[0]" in text
    assert "ask = [&quot;push_*&quot;]" in text or 'ask = ["push_*"]' in text


async def test_the_policy_page_names_the_key_that_decides_who_asks_where_the_agent_cannot(site: Site) -> None:
    file = site.folder / "hookproxy.toml"
    file.write_text('on_ask_fallback = "console"\n' + TOML.replace("deny", 'ask = ["push_*"]\ndeny', 1))
    _, text, _ = await site.get("policy")
    assert "hookproxy top asks instead (on_ask_fallback = &quot;console&quot;)" in text.replace('"', "&quot;")


async def test_the_policy_page_lists_the_tools_of_the_named_server_and_of_no_other(site: Site) -> None:
    _, text, _ = await site.get("policy")
    assert "lists its tools, and ends it" in text
    (site.folder / "hookproxy.toml").write_text(TOML.replace("write_.*", "echo"))
    _, text, _ = await site.post("policy-server", command="touch evil")
    rows = re.findall(r"<tr>.*?</tr>", text[text.index('id="server"') :], re.DOTALL)
    assert "echo" in rows[1]
    assert "cat" in rows[1]
    assert "no hook" in rows[2]
    assert not (site.folder / "evil").exists()
    assert (await site.get("policy-server"))[0] == 405


async def test_a_broken_configuration_is_shown_as_an_error(site: Site) -> None:
    (site.folder / "hookproxy.toml").write_text("deny = <b>")
    status, text, _ = await site.get("policy")
    assert status == 500
    assert 'role="alert"' in text
    assert "<b>deny" not in text


async def test_a_period_that_is_none_is_an_error(site: Site) -> None:
    status, text, _ = await site.get("history?since=yesterdayish")
    assert (status, "is not a time" in text) == (400, True)


async def test_exports_are_files_with_what_the_page_shows(site: Site) -> None:
    _, text, headers = await site.get("export?format=csv&since=all")
    assert headers["content-disposition"] == 'attachment; filename="calls.csv"'
    assert len(text.splitlines()) == 4
    _, text, headers = await site.get("export?format=jsonl&since=all&text=file-1")
    assert [json.loads(line)["call"] for line in text.splitlines()] == ["run-1"]


async def test_an_answer_is_given_with_its_place_and_the_reason(site: Site) -> None:
    site.state.apply("r", Run(1, "r", 1, 0.0))
    site.state.apply("r", Changes(asked=(approval(),)))
    _, text, _ = await site.post("answer", run="r", approval="q", action="deny", reason=" not now ")
    assert "Denied" in text
    place = f"web console, {site.host}"
    assert site.answers == [("r", Answer("q", "deny", "not now", place))]


async def test_changed_arguments_are_given_as_they_were_typed(site: Site) -> None:
    site.state.apply("r", Run(1, "r", 1, 0.0))
    site.state.apply("r", Changes(asked=(approval(may_edit=True),)))
    typed = '{\r\n  "to": "ann"\r\n}'
    await site.post("answer", run="r", approval="q", action="allow", arguments=typed)
    ((_, given),) = site.answers
    assert (given.action, given.arguments) == ("allow", '{\n  "to": "ann"\n}')


async def test_a_second_answer_is_told_who_was_first(site: Site) -> None:
    from hookproxy.live.messages import Settled

    site.state.apply("r", Run(1, "r", 1, 0.0))
    site.state.apply("r", Changes(asked=(approval(),)))
    site.state.apply("r", Changes(settled=(Settled("q", "allow", "anna, process 7"),)))
    _, text, _ = await site.post("answer", run="r", approval="q", action="deny")
    assert "Your answer came too late. Allowed once by anna, process 7" in text
    assert site.answers == []


async def test_an_answer_that_a_run_does_not_take_is_reported(site: Site) -> None:
    site.state.apply("r", Run(1, "r", 1, 0.0))
    site.state.apply("r", Changes(asked=(approval(),)))
    site.taken = AnswerTaken("q", False, "the time for it is over")
    _, text, _ = await site.post("answer", run="r", approval="q", action="allow")
    assert "Your answer was not taken: the time for it is over" in text
    assert (await site.post("answer", run="r", approval="q", action="maybe"))[0] == 400


async def test_the_stream_begins_with_everything_and_goes_on_with_changes(site: Site) -> None:
    site.state.apply("r", Run(1, "r", 1, 0.0))
    site.state.apply("r", Changes(asked=(approval(),)))
    got = anyio.Event()

    def read() -> list[dict[str, object]]:
        connection = http.client.HTTPConnection(site.host, timeout=30)
        connection.request("GET", f"/{site.access.folder}/events", headers={"Cookie": site.cookie})
        response = connection.getresponse()
        found: list[dict[str, object]] = []
        while len(found) < 2:
            line = response.readline()
            if line.startswith(b"data: "):
                found.append(json.loads(line.removeprefix(b"data: ")))
                anyio.from_thread.run_sync(got.set)
        connection.close()
        return found

    async def change() -> None:
        await got.wait()
        site.state.apply("r", Changes(asked=(approval("q2"),)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(change)
            first, second = await anyio.to_thread.run_sync(read)
    assert (first["first"], first["waiting"], second["waiting"]) == (True, 1, 2)
    assert [key for key, _, _ in second["asked"]] == ["r/q2"]  # type: ignore[attr-defined]  # it is a list
