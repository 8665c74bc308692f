"""`[roots]` of hookproxy.toml and gateway.toml, and what the administrator's file makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.load import load, read_layer
from hookproxy.config.managed_merge import merge
from hookproxy.config.toml_text import setting_line
from hookproxy.model.errors import ConfigError
from hookproxy.model.settings import ROOTS_OF_AGENT, RootsRule
from hookproxy.trust.sources import FileContext


def rule(folder: Path, text: str) -> RootsRule:
    (folder / "hookproxy.toml").write_text(text)
    loaded = load("hookproxy.toml", [], None, {"HOME": str(folder)}, str(folder))
    return loaded.settings.roots


def test_what_each_key_means(tmp_path: Path) -> None:
    assert rule(tmp_path, "") == rule(tmp_path, "[roots]\npass = true") == ROOTS_OF_AGENT
    assert rule(tmp_path, "[roots]\npass = false") == RootsRule(())
    given = RootsRule(((f"file://{tmp_path}/a%20b", "a b"), (f"file://{tmp_path}/c", "c")))
    assert rule(tmp_path, '[roots]\ngive = ["a b", "~/c"]') == given
    assert rule(tmp_path, '[roots]\npass = false\ngive = ["a b", "c"]') == given
    assert rule(tmp_path, '[roots]\nallow = ["x/../y", "file:///srv"]') == RootsRule(None, ((f"{tmp_path}/y", "/srv"),))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "hookproxy.toml:1: roots: the table is empty"),
        ('give = ["a"]\nallow = ["b"]', "roots: give and allow contradict each other"),
        ('pass = true\ngive = ["a"]', "roots: pass = true and give contradict each other"),
        ('pass = false\nallow = ["a"]', "roots: pass = false and allow contradict each other"),
        (
            'allow = ["a", "https://x.example/"]',
            "hookproxy.toml:2: roots.allow[1]: 'https://x.example/' is not a folder",
        ),
        ('give = ["/srv/*"]', "roots.give[0]: '/srv/*' is not a folder"),
        ('alow = ["a"]', "roots.alow: unknown key"),
        ('give = "a"', "roots.give: "),
    ],
)
def test_what_makes_no_sense_stops_the_start(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        rule(tmp_path, f"[roots]\n{text}\n")
    assert problem in str(error.value)
    assert error.value.hint


def test_the_line_of_the_setting(tmp_path: Path) -> None:
    for text in ("{ pass = false }", "{ pass = true }", '{ allow = ["/srv"] }', '{ give = ["file:///srv"] }'):
        (tmp_path / "hookproxy.toml").write_text(f"roots = {text}")
        loaded = load("hookproxy.toml", [], None, {"HOME": str(tmp_path)}, str(tmp_path))
        assert setting_line(loaded.settings, "roots") == f"roots = {text}"


@pytest.mark.parametrize(
    ("user", "managed", "expected"),
    [
        ("", "pass = false", RootsRule(())),
        ("pass = true", "pass = false", RootsRule(())),
        ("pass = false", "pass = true", RootsRule(())),
        ('give = ["/a"]', 'give = ["/b"]', RootsRule((("file:///b", "b"),))),
        ('allow = ["/a"]', 'allow = ["/b"]', RootsRule(None, (("/a",), ("/b",)))),
        ('give = ["/a"]', 'allow = ["/b"]', RootsRule((("file:///a", "a"),), (("/b",),))),
    ],
)
def test_nobody_widens_what_the_administrator_allows(
    tmp_path: Path, user: str, managed: str, expected: RootsRule
) -> None:
    def layer(name: str, text: str) -> object:
        (tmp_path / name).write_text(f"[roots]\n{text}" if text else "")
        return read_layer(str(tmp_path / name), FileContext({}, str(tmp_path)))

    settings = merge(layer("user.toml", user), [layer("managed.toml", managed)])[0]  # type: ignore[arg-type, list-item]
    assert settings.roots == expected


def test_a_folder_that_is_not_there_is_noted(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    file = tmp_path / "hookproxy.toml"
    for key, what in (("give", "which servers are given"), ("allow", "so no root of an agent is in it")):
        file.write_text(f'[roots]\n{key} = ["there", "a b"]\n')
        notes = load(str(file), (), None, {"HOME": str(tmp_path)}, str(tmp_path)).notes
        assert notes == (f"{file}: roots.{key}: there is no folder {tmp_path}/a b, {what}",)
