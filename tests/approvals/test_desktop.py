"""A notification of the desktop: names that others have chosen are data, never a script, markup or an option."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.approvals import desktop
from tests.approvals.test_webhook import approval

pytestmark = pytest.mark.anyio

EVIL = '" & (do shell script "touch /tmp/x") & "\n<b>--urgency=critical\u202e'


def program(folder: Path, name: str, script: str = "") -> dict[str, str]:
    """A program that writes down its arguments, in an environment where it is found."""
    path = folder / name
    path.write_text(f'#!/bin/sh\nfor word; do printf "%s\\n--\\n" "$word"; done >"{folder}/shown"\n{script}\n')
    path.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.fixture(autouse=True)
def no_other_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desktop, "_PLACES", ())


async def test_it_says_which_call_waits_and_where_to_answer(tmp_path: Path) -> None:
    environ = program(tmp_path, "notify-send")
    assert await desktop.notify(approval(), "hookproxy console", environ) == ""
    shown = (tmp_path / "shown").read_text().split("\n--\n")
    assert shown[-3:-1] == [
        "hookproxy: a call waits for approval",
        "send of mail waits for your answer in hookproxy console.",
    ]
    assert "ann" not in "".join(shown), "no arguments"


def test_names_are_one_line_of_text_without_markup() -> None:
    title, text = desktop.texts(approval(tool=EVIL, server="-x"), "the agent")
    words = desktop.command((title, text), {"PATH": ""}, is_mac=False) or ("", "--", "", text)
    assert "\n" not in text
    assert "\u202e" not in text
    assert words.index("--") < len(words) - 1


async def test_markup_of_a_name_is_escaped_and_options_are_none(tmp_path: Path) -> None:
    environ = program(tmp_path, "notify-send")
    assert await desktop.notify(approval(tool="<b>--urgency", server=""), "x", environ) == ""
    shown = (tmp_path / "shown").read_text().split("\n--\n")
    assert "&lt;b&gt;--urgency waits" in shown[-2]


def test_a_mac_gets_names_as_arguments_of_a_script_that_is_always_the_same(tmp_path: Path) -> None:
    environ = program(tmp_path, "osascript")
    plain = desktop.command(desktop.texts(approval(), "x"), environ, is_mac=True)
    evil = desktop.command(desktop.texts(approval(tool=EVIL), "x"), environ, is_mac=True)
    assert plain[:-1] == evil[:-1]
    assert not evil[-2].startswith("-"), "options end before"


def test_what_looks_like_a_secret_in_a_name_is_masked() -> None:
    _, text = desktop.texts(approval(tool="ghp_" + "aB3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7C"), "x")
    assert "ghp_" not in text


@pytest.mark.parametrize(("script", "why"), [("exit 3", "notify-send"), ("echo no bus >&2; exit 1", "no bus")])
async def test_what_prevents_it_is_said(tmp_path: Path, script: str, why: str) -> None:
    environ = program(tmp_path, "notify-send", script)
    assert why in await desktop.notify(approval(), "x", environ)
    assert "no notify-send" in await desktop.notify(approval(), "x", {"PATH": "relative"})
