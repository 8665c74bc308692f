"""The console in a real browser: headless Chromium, the real `hookproxy console`, real runs and agents."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TextIO

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from selenium.webdriver.common.keys import Keys

from tests.end.agent import HOOKPROXY, INITIALIZED, SERVER, Json, call, line_of, notification, request
from tests.support.console_process import CHROMIUM, DRIVER, FAULTS, PATIENCE, PLACES, Browser, console, environment
from tests.support.http_server import Request, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no Chromium: scripts/test installs it"),
]

EVIL: Final = "<script>document.title='XSS'</script><img src=x onerror=\"document.title='XSS'\">\u202e\x1b[31m"
WIDTHS: Final = (360, 800, 1440)

TOML: Final = """\
[permissions]
deny = ["delete_*"]
ask = ["write_file"]

[[hooks.PreToolUse]]
matcher = "write_.*"
command = "grep -q forbidden && { echo 'This is forbidden.' >&2; exit 2; }; exit 0"

[audit]
arguments = "full"
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for the tests of this file that a worker runs: to start it takes longer than most of them."""
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


def write_audit(path: Path, count: int) -> None:
    """An audit with calls of the last days, among them hostile ones."""
    now = datetime.now(UTC)
    with path.open("w") as file:
        for number in range(count):
            refused = number % 9 == 0
            hook = {
                "source": "/home/anna/.claude/settings.json: hooks.PreToolUse[0].hooks[0]", "event": "PreToolUse",
                "dialect": "claude", "command": "./guards/paths.py", "ended": "exited", "exit": 2 if refused else 0,
                "ms": 12.0 + number % 40, "outcome": "blocking" if refused else "success",
                "verdict": "deny" if refused else "none", "reason": EVIL if refused else "", "stdout": EVIL,
                "input": "{}",
            }  # fmt: skip
            record = {
                "v": 1, "time": (now - timedelta(seconds=2 * (count - number))).isoformat(timespec="milliseconds"),
                "call": f"run-{number}", "session": "s", "server": ("files", "git", EVIL)[number % 3],
                "tool": ("read_file", "write_file", "delete_file", EVIL)[number % 4], "id": number,
                "arguments": {"path": f"/home/anna/file-{number}", "text": EVIL}, "hooks": [hook], "changed": [],
                "decision": "deny" if refused else "allow", "reason": EVIL if refused else "",
                "by": "./guards/paths.py" if refused else "", "result": "refused" if refused else "ok", "ms": 30.5,
                "hook_ms": 12.0, "agent": ("claude-code 2.1", EVIL)[number % 2],
            }  # fmt: skip
            file.write(json.dumps(record, ensure_ascii=number % 2 == 0, separators=(",", ":")) + "\n")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a console with a configuration and an audit, for this file: no test changes anything."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "hookproxy.toml").write_text(TOML)
    (folder / "changed.toml").write_text(TOML.replace('"delete_*"', '"read_*"'))
    write_audit(folder / "audit.jsonl", 400)
    arguments = ("--config", "hookproxy.toml", "--audit", "audit.jsonl", "--compare", "changed.toml")
    with console(folder, environment(folder), *arguments) as address:
        yield address
    assert (folder / "hookproxy.toml").read_text() == TOML


@pytest.fixture
def site(browser: Browser, pages: str) -> Iterator[Browser]:
    """These pages, open in the browser."""
    browser.look(1280)
    browser.open(pages)
    yield browser
    assert browser.driver.title != "XSS"
    assert [one for one in browser.messages() if "Content Security Policy" in one] == []


def check_looks(browser: Browser) -> None:
    """No page breaks at any width, in light and dark, which have the same layout."""
    follows = browser.count("#pause[aria-pressed=false]") > 0
    if follows:
        browser.click("#pause")  # the times of calls in flight go on each second, and have other widths
    for width in WIDTHS:
        browser.until(lambda width=width: _same_layout(browser, width))
    if follows:
        browser.click("#pause")
    browser.look(1280)


def _same_layout(browser: Browser, width: int) -> bool:
    """Check a page in light and dark. Returns false if it says something else meanwhile: look again."""
    texts, places = [], []
    for dark in (False, True):
        browser.look(width, dark=dark)
        texts.append(browser.text())
        assert browser.js(FAULTS) == [], f"{browser.driver.title} at {width}, {'dark' if dark else 'light'}"
        places.append(browser.js(PLACES))
        texts.append(browser.text())
    if len(set(texts)) > 1:
        return False
    assert places[0] == places[1]
    return True


@pytest.mark.parametrize("page", ["history", "policy?rule=deny&name=x", "try", "replay"])
def test_a_page_looks_right_at_every_width_in_light_and_dark(site: Browser, page: str) -> None:
    site.go(page)
    site.until(lambda: site.count(".loading") == 0)
    check_looks(site)


def test_a_recorded_call_is_found_by_filters_and_shown_whole(site: Browser) -> None:
    site.go("history")
    site.type("[name=text]", "file-381")
    site.click(".filters button")
    site.until(lambda: site.count("tbody tr.note, .calls tbody tr") == 1)
    site.click(".calls tbody a")
    site.until_text("Decision")
    assert "/home/anna/file-381" in site.text("pre")
    assert "<script>" in site.text("pre")
    assert "U+202E" in site.text()
    assert "U+001B" in site.text()
    check_looks(site)


def test_the_charts_of_a_period_are_drawn_and_say_their_numbers(site: Browser) -> None:
    site.go("history?since=24h")
    site.until_text("Tools refused most")
    assert "400 calls" in site.js("return document.querySelector('svg[role=img]').ariaLabel")
    assert site.count("svg rect") > 5


def test_a_hundred_thousand_lines_are_painted_within_a_second(browser: Browser, tmp_path: Path, home: Path) -> None:
    write_audit(tmp_path / "small.jsonl", 500)
    lines = (tmp_path / "small.jsonl").read_bytes()
    (tmp_path / "audit.jsonl").write_bytes(lines * 200)
    with console(tmp_path, environment(home), "--audit", "audit.jsonl") as address:
        browser.open(address)
        paints: list[float] = []
        while len(paints) < 10 and min(paints, default=1000) >= 1000:  # the machine may be busy with other tests
            browser.go("history")
            paints.append(
                browser.until(
                    lambda: browser.js("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
                )
            )
        assert browser.count(".calls tbody tr") == 100
        browser.until_text("100,000 calls")
    assert min(paints) < 1000


def test_a_call_is_tried_with_the_keyboard_alone(site: Browser) -> None:
    site.go("try")
    site.js("document.querySelector('[name=tool]').focus()")
    site.driver.switch_to.active_element.send_keys("write_file", Keys.TAB)
    site.driver.switch_to.active_element.send_keys(Keys.CONTROL, "a")
    site.driver.switch_to.active_element.send_keys('{"a": "forbidden <b>"}', Keys.TAB, Keys.TAB)
    site.driver.switch_to.active_element.send_keys(Keys.ENTER)
    site.until_text("This is forbidden.")
    check_looks(site)


def test_a_replay_shows_what_would_differ(site: Browser) -> None:
    site.go("replay?since=all&tool=read_file")
    site.js(
        "document.querySelector('[name=configuration]').value = '1';document.querySelector('[name=newest]').value = '5'"
    )
    site.click("[name=runs]")
    site.click("form button")
    site.until_text("5 calls replayed, 4 would be decided differently")
    check_looks(site)


def test_the_lines_of_a_rule_are_shown(site: Browser) -> None:
    site.go("policy")
    site.click("#rule summary")
    site.type("[name=name]", "push_*")
    site.click("#rule form button")
    site.until_text('deny = ["delete_*", "push_*"]', "#rule pre")


def test_without_the_token_the_browser_sees_nothing(site: Browser) -> None:
    address = site.base
    site.driver.delete_all_cookies()
    site.go("history")
    assert "Open the address that hookproxy console has printed" in site.text()
    site.driver.get(address.rpartition("/")[0].rpartition("/")[0] + "/?token=guess")
    assert "Open the address that hookproxy console has printed" in site.text()


# --- live: real runs with real agents ---


LIVE_TOML: Final = """\
on_ask_fallback = "console"

[permissions]
deny = ["delete_*"]
ask = ["write", "write<*"]

[[hooks.PreToolUse]]
name = "shorten"
matcher = "rewrite_me"
command = "echo '{\\"hookSpecificOutput\\":{\\"hookEventName\\":\\"PreToolUse\\",\\"updatedInput\\":{\\"new\\":1}}}'"

[[hooks.PreToolUse]]
name = "settings"
matcher = "write_file"
command = "cat ask.json"

[audit]
file = "audit.jsonl"
arguments = "full"
calls = "all"
"""


ASK: Final = """\
{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
 "permissionDecisionReason": "it changes the settings of the project"}}
"""


class LiveAgent:
    """An agent that speaks MCP line by line, and cannot ask a person. It ends with its block."""

    def __init__(
        self, folder: Path, environ: Mapping[str, str], name: str, agent: str, server: Sequence[str] = ("--", *SERVER)
    ) -> None:
        command = [HOOKPROXY, "run", "--config", "live.toml", "--name", name, *server]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.name = name
        client = {"name": agent, "version": "2.1"}
        initialize = request("init", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        self.send(initialize)
        self.response("init")
        self.send(INITIALIZED)

    def send(self, *messages: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(map(line_of, messages)))
        self.process.stdin.flush()

    def response(self, number: int | str) -> Json:
        """The next response to this request; earlier messages are dropped."""
        assert self.process.stdout is not None
        while True:
            message: Json = json.loads(self.process.stdout.readline())
            if message.get("id") == number:
                return message

    def text(self, number: int) -> str:
        """The text of the response to a call."""
        return str(self.response(number)["result"]["content"][0]["text"])

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.stdout.close()


class Live:
    """A console that is open at its live page, and the agents of the same user."""

    def __init__(self, folder: Path, home: Path, browser: Browser) -> None:
        (folder / "live.toml").write_text(LIVE_TOML)
        (folder / "ask.json").write_text(ASK)
        self.folder = folder
        self.environ = environment(home)
        self.browser = browser
        self.agents: list[LiveAgent] = []

    def agent(
        self, name: str = "files", agent: str = "lean-agent", server: Sequence[str] = ("--", *SERVER)
    ) -> LiveAgent:
        """A new agent of a server, which the page already knows."""
        self.agents.append(LiveAgent(self.folder, self.environ, name, agent, server))
        self.browser.until_text(name[:30], "#runs")  # a long name is cut
        return self.agents[-1]


@pytest.fixture
def live(browser: Browser, tmp_path: Path, home: Path) -> Iterator[Live]:
    made = Live(tmp_path, home, browser)
    with console(tmp_path, made.environ, "--config", "live.toml") as address:
        browser.look(1280)
        browser.open(address)
        try:
            yield made
            assert "XSS" not in browser.driver.title
            assert [one for one in browser.messages() if "Content Security Policy" in one] == []
        finally:
            for agent in made.agents:
                agent.close()


ALLOW: Final = ".approval button[value=allow]"
SESSION: Final = ".approval button[value=allow_session]"
DENY: Final = ".approval button.deny"
SETTLING: Final = 0.7  # seconds in which the page takes no press of the pointer after an approval has appeared


def wait_for_approval(browser: Browser, count: int = 1) -> None:
    """Wait until so many approvals are shown, and their buttons may be pressed with the pointer."""
    browser.until(lambda: browser.count(".approval:not(.settled)") == count)
    changed = browser.js("return performance.now()")
    browser.until(lambda: browser.js("return performance.now()") > changed + SETTLING * 1000)


def when_shown(browser: Browser, script: str) -> None:
    """Run a script in the page as soon as it shows the next approval, however late this test looks."""
    browser.js(
        "new MutationObserver((_changes, watch) => { if (!document.querySelector('.approval')) return;"
        f" watch.disconnect(); {script} }}).observe(document.querySelector('#approvals'), {{childList: true}})"
    )


def test_calls_appear_as_they_happen_with_what_became_of_them(live: Live) -> None:
    agent = live.agent()
    browser = live.browser
    agent.send(call(1, "echo", path="/etc/hosts"), call(2, "delete_all"), call(3, "rewrite_me", old=1), call(4, "hold"))
    browser.until_text("3 ended")
    browser.until_text("1 in flight")
    rows = browser.text("#ended")
    assert "/etc/hosts" in rows
    assert "refused" in rows
    assert "rewritten" in rows
    assert "at the server" in browser.text("#in-flight")
    agent.send(notification("release", requestId=4))
    browser.until_text("4 ended")
    browser.until(lambda: browser.text("#in-flight") == "")
    browser.driver.find_element("link text", "rewrite_me").click()
    browser.until_text("Arguments, as the agent sent them and as they ran")
    assert '-  "old": 1' in browser.text(".diff")
    assert '+  "new": 1' in browser.text(".diff")
    check_looks(browser)


def test_the_list_follows_what_is_typed_into_the_filters(live: Live) -> None:
    agent, other = live.agent("files"), live.agent("git")
    browser = live.browser
    agent.send(call(1, "echo", word="alpha"), call(2, "delete_x"))
    other.send(call(1, "echo", word="beta"))
    browser.until_text("3 ended")
    browser.type("[name=server]", "git")
    browser.until(lambda: browser.count("#ended tr") == 1)
    assert "beta" in browser.text("#ended")
    browser.js("document.querySelector('[name=server]').value = ''")
    browser.type("[name=text]", "ALPHA")
    browser.until(lambda: "alpha" in browser.text("#ended") and browser.count("#ended tr") == 1)
    assert "text=ALPHA" in browser.driver.current_url
    browser.go("./?decision=refused")
    browser.until(lambda: browser.count("#ended tr") == 1)
    assert "delete_x" in browser.text("#ended")


def test_an_approval_reaches_a_real_agent_that_waits(live: Live) -> None:
    browser = live.browser
    started = StdioServerParameters(
        command=HOOKPROXY,
        args=["run", "--config", "live.toml", "--name", "files", "--", *SERVER],
        env=live.environ,
        cwd=live.folder,
    )

    async def calls(portal_errors: TextIO) -> list[bool | None]:
        async with Client(stdio_client(started, errlog=portal_errors)) as client:
            return [(await client.call_tool("write", {"path": "a"})).is_error for _ in range(3)]

    with (live.folder / "errors").open("w") as errors, start_blocking_portal() as portal:
        results = portal.start_task_soon(calls, errors)
        wait_for_approval(browser)
        assert browser.driver.title.startswith("(1) ")
        assert '"path": "a"' in browser.text(".approval pre")
        browser.click(ALLOW)
        browser.until_text("Allowed once")
        browser.until(lambda: browser.count(".approval:not(.settled)") == 1)
        browser.driver.execute_script("document.querySelector('.approval.settled')?.remove()")
        wait_for_approval(browser)
        browser.type(".approval [name=reason]", "Not in this folder.")
        browser.click(DENY)
        browser.until(lambda: browser.count(".approval.settled") == 1)
        browser.driver.execute_script("document.querySelector('.approval.settled')?.remove()")
        wait_for_approval(browser)
        browser.click(ALLOW)
        assert results.result(PATIENCE) == [False, True, False]
    audit = [json.loads(line) for line in (live.folder / "audit.jsonl").read_text().splitlines()]
    assert [one["decision"] for one in audit] == ["asked-allow", "asked-deny", "asked-allow"]
    assert "web console, 127.0.0.1" in json.dumps(audit[0])


def test_a_denial_gives_the_model_its_reason_and_enter_never_allows(live: Live) -> None:
    agent, browser = live.agent(), live.browser
    agent.send(call(1, "write", path="a"))
    wait_for_approval(browser)
    browser.type(".approval [name=reason]", "Use the copy instead.\n")
    assert "Use the copy instead." in agent.text(1)


def test_the_arguments_are_changed_before_the_call_is_allowed(live: Live) -> None:
    agent, browser = live.agent(), live.browser
    agent.send(call(1, "write", path="a"))
    wait_for_approval(browser)
    browser.click(".approval .edit summary")
    field = browser.driver.find_element("css selector", ".approval .edit textarea")
    assert json.loads(str(field.get_attribute("value"))) == {"path": "a"}
    browser.type(".approval .edit textarea", "x")  # behind the end: no JSON any more
    browser.click(".approval .edit button")
    browser.until_text("Your answer was not taken: These arguments cannot be used: ")
    browser.js("document.querySelector('.approval .edit textarea').value = arguments[0]", '{"path": "b"}')
    check_looks(browser)
    browser.click(".approval .edit button")
    assert agent.text(1) == "ran write"
    browser.until(lambda: browser.count(".approval:not(.settled)") == 0)
    browser.until(lambda: "changed" in browser.text("#ended") or "rewritten" in browser.text("#ended"))
    record = json.loads((live.folder / "audit.jsonl").read_text().splitlines()[-1])
    assert (record["edited"], record["rewritten"]) == (True, {"path": "b"})


def test_an_approval_is_answered_with_the_keyboard_alone(live: Live) -> None:
    agent, browser = live.agent(), live.browser
    agent.send(call(1, "write", path="a"))
    browser.until(lambda: browser.count(".approval") == 1)
    browser.js("document.querySelector('#waiting').focus()")
    seen = []
    for _ in range(4):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        seen.append(str(browser.js("return document.activeElement.innerText || document.activeElement.tagName")))
        if seen[-1] == "Allow for this session":
            break
    assert [one[:5] for one in seen] == ['{\n  "', "Allow", "Allow"]
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert agent.text(1) == "ran write"
    agent.send(call(2, "write", path="b"))
    assert agent.text(2) == "ran write"


def test_a_press_right_after_a_change_of_the_approvals_is_not_taken(live: Live) -> None:
    agent, browser = live.agent(), live.browser
    press = "new MouseEvent('click', {bubbles: true, cancelable: true, detail: 1})"
    when_shown(browser, f"document.querySelector('{ALLOW}').dispatchEvent({press})")
    agent.send(call(1, "write", path="a"))
    browser.until_text("press again")
    assert browser.count(".approval:not(.settled)") == 1
    wait_for_approval(browser)
    browser.click(ALLOW)
    assert agent.text(1) == "ran write"


FORM: Final = "new URLSearchParams(new FormData(document.querySelector('.approval form'))).toString()"
"""What a press of a button would send besides the answer."""


def answered(browser: Browser, members: object, action: str) -> Json:
    """What the console says to an answer that is sent without its button."""
    told: Json = browser.driver.execute_async_script(
        "const [body, done] = arguments; fetch('answer', {method: 'POST', body: new URLSearchParams(body),"
        "headers: {Accept: 'application/json'}}).then((one) => one.json()).then(done)",
        f"{members}&action={action}",
    )
    return told


def test_an_answer_after_the_time_is_refused_with_a_word(live: Live) -> None:
    (live.folder / "live.toml").write_text(f"ask_seconds = 2\n{LIVE_TOML}")
    agent, browser = live.agent(), live.browser
    when_shown(browser, f"window.members = {FORM}")
    members, calls = None, 0
    while not members and calls < 10:  # on a busy machine an approval may be over before the page can show it
        agent.send(call(calls, "write", path="a"))
        assert "no answer came" in agent.text(calls)
        members, calls = browser.js("return window.members"), calls + 1
    browser.until(lambda: browser.count(".approval:not(.settled)") == 0)
    told = answered(browser, members, "allow")
    assert told["over"] is True
    assert "came too late" in told["text"]
    records = [json.loads(line) for line in (live.folder / "audit.jsonl").read_text().splitlines()]
    assert [record["result"] for record in records] == ["refused"] * calls


async def far_server(request: Request) -> None:
    """A server at an address with one tool."""
    if request.message.get("method") == "initialize":
        server = {"name": "far", "version": "1"}
        answer = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server}
        await request.result(json.dumps(answer))
    elif "id" in request.message:
        await request.result('{"content": [{"type": "text", "text": "ran far away"}]}')
    else:
        await request.status("405 Method Not Allowed" if request.method == "GET" else "202 Accepted")


def test_calls_of_a_server_at_an_address_are_shown_and_answered_too(live: Live) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[int]:
        async with serving(far_server) as server:
            yield server.port

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened()) as port:
        agent, browser = live.agent("far", server=("--url", f"http://127.0.0.1:{port}/mcp")), live.browser
        agent.send(call(1, "write", path="a"))
        wait_for_approval(browser)
        assert "far" in browser.text(".approval")
        browser.click(ALLOW)
        assert agent.text(1) == "ran far away"
        browser.until_text("1 ended")
        agent.close()


def test_two_consoles_show_the_same_approval_and_the_second_answer_is_reported(live: Live) -> None:
    agent, browser = live.agent(), live.browser
    first = browser.driver.current_window_handle
    with console(live.folder, live.environ, "--config", "live.toml") as address:
        agent.send(call(1, "write", path="a"))
        wait_for_approval(browser)
        browser.driver.switch_to.new_window("tab")
        second, base = browser.driver.current_window_handle, browser.base
        try:
            browser.open(address)
            wait_for_approval(browser)
            members = browser.js(f"return {FORM}")
            browser.driver.switch_to.window(first)
            browser.click(ALLOW)
            assert agent.text(1) == "ran write"
            browser.driver.switch_to.window(second)
            browser.until_text("Allowed once by")
            told = answered(browser, members, "deny")
        finally:
            browser.driver.close()
            browser.driver.switch_to.window(first)
            browser.base = base
    assert told["over"] is True
    assert told["text"].startswith("Your answer came too late. Allowed once by")


def test_an_approval_notifies_a_hidden_page_and_disappears_with_a_run_that_is_killed(live: Live) -> None:
    agent, browser = live.agent(), live.browser
    hidden = "Object.defineProperty(document, 'hidden', {value: true});"
    browser.js(hidden + "window.Notification = function (name, text) { window.notified = text.body; };")
    browser.js("window.Notification.permission = 'granted'")
    agent.send(call(1, "write", path="a"))
    browser.until(lambda: browser.count(".approval") == 1)
    assert browser.js("return window.notified") == "write of files waits for your approval"
    agent.process.kill()
    browser.until_text("No run of hookproxy is known now", "#runs")
    browser.until_text("It no longer waits")
    assert not browser.driver.title.startswith("(")


def test_hostile_names_and_ten_megabytes_of_arguments_are_shown_as_text(live: Live) -> None:
    agent, browser = live.agent(EVIL), live.browser
    agent.send(call(1, "write" + EVIL, **{EVIL: EVIL, "long": "x" * 10_000_000, "end": "the very end"}))
    browser.until(lambda: browser.count(".approval") == 1)
    shown = browser.js("return document.querySelector('.approval pre').textContent")
    assert len(shown) > 10_000_000
    assert "the very end" in shown
    assert "<script>" in shown
    assert "U+202E" in shown
    assert browser.count(".approval img, .approval script") == 0
    browser.js("document.querySelector('.approval pre').scrollTop = 1e9")
    wait_for_approval(browser)
    browser.click(DENY)
    assert "not allow" in agent.text(1)
    agent.send(call(2, EVIL, **{EVIL: EVIL}))
    browser.until_text("2 ended")
    check_looks(browser)


def test_many_calls_are_counted_exactly_while_the_list_stays_bounded(live: Live) -> None:
    agent, browser = live.agent(), live.browser
    for start in range(0, 3000, 500):
        agent.send(*(call(number, "echo", n=number) for number in range(start, start + 500)))
        agent.response(start + 499)
    browser.until_text("3,000 ended")
    browser.until_text('{"n":2999}', "#ended")
    assert browser.count("#ended tr") <= 200


def test_the_live_page_looks_right_and_its_picture_is_made(live: Live) -> None:
    agent, other = live.agent("files", "claude-code"), live.agent("git", "cursor")
    browser = live.browser
    browser.js("Object.defineProperty(window, 'Notification', {value: undefined})")
    for number in range(3):
        agent.send(call(number, "read_file", path=f"/home/anna/project/src/module_{number}.py"))
        other.send(call(number, "git_status", repo_path="/home/anna/project"))
    agent.send(call(10, "delete_folder", path="/home/anna/project/build"), call(11, "rewrite_me", old=1))
    browser.until_text("8 ended")
    other.send(call(20, "hold", branch="main"))
    agent.send(call(21, "write_file", path="/home/anna/project/src/settings.py", content="DEBUG = True\n"))
    wait_for_approval(browser)
    check_looks(browser)
    browser.look(1200, 820)
    picture = browser.driver.get_screenshot_as_png()
    assert 20_000 < len(picture) < 300_000
    if folder := os.environ.get("PICTURES"):  # docs/pictures: the picture in the README
        (Path(folder) / "console.png").write_bytes(picture)
    base = browser.base
    browser.go("try")
    browser.until(lambda: browser.driver.title.startswith("(1) Try"))
    browser.driver.get(base)
    wait_for_approval(browser)
    browser.click(DENY)
    agent.response(21)
    other.send(notification("release", requestId=20))
