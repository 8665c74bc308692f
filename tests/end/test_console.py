"""The console in a real browser: headless Chromium, the real `hookproxy console`, real runs and agents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.support.console_process import CHROMIUM, DRIVER, FAULTS, PLACES, Browser, console, environment

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


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a worker: to start it takes longer than most of them."""
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


@pytest.fixture
def site(browser: Browser, tmp_path: Path, home: Path) -> Iterator[Browser]:
    """A console with a configuration and an audit, open in the browser."""
    (tmp_path / "hookproxy.toml").write_text(TOML)
    (tmp_path / "changed.toml").write_text(TOML.replace('"delete_*"', '"read_*"'))
    write_audit(tmp_path / "audit.jsonl", 400)
    arguments = ("--config", "hookproxy.toml", "--audit", "audit.jsonl", "--compare", "changed.toml")
    with console(tmp_path, environment(home), *arguments) as address:
        browser.look(1280)
        browser.open(address)
        yield browser
        assert browser.driver.title != "XSS"
        assert [one for one in browser.messages() if "Content Security Policy" in one] == []


def check_looks(browser: Browser) -> None:
    """No page breaks at any width, in light and dark, which have the same layout."""
    for width in WIDTHS:
        places = []
        for dark in (False, True):
            browser.look(width, dark=dark)
            assert browser.js(FAULTS) == [], f"{browser.driver.title} at {width}, {'dark' if dark else 'light'}"
            places.append(browser.js(PLACES))
        assert places[0] == places[1]
    browser.look(1280)


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
        browser.go("history")
        paint = browser.until(
            lambda: browser.js("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        )
        assert browser.count(".calls tbody tr") == 100
        browser.until_text("100,000 calls")
    assert paint < 1000


def test_a_call_is_tried_with_the_keyboard_alone(site: Browser) -> None:
    site.go("try")
    site.js("document.querySelector('[name=tool]').focus()")
    from selenium.webdriver.common.keys import Keys

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


def test_the_lines_of_a_rule_are_shown_and_no_file_is_changed(site: Browser, tmp_path: Path) -> None:
    site.go("policy")
    site.click("#rule summary")
    site.type("[name=name]", "push_*")
    site.click("#rule form button")
    site.until_text('deny = ["delete_*", "push_*"]', "#rule pre")
    assert (tmp_path / "hookproxy.toml").read_text() == TOML


def test_without_the_token_the_browser_sees_nothing(site: Browser) -> None:
    address = site.base
    site.driver.delete_all_cookies()
    site.go("history")
    assert "Open the address that hookproxy console has printed" in site.text()
    site.driver.get(address.rpartition("/")[0].rpartition("/")[0] + "/?token=guess")
    assert "Open the address that hookproxy console has printed" in site.text()
