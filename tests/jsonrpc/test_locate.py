"""The lines of keys in JSON, TOML and YAML, in any spelling."""

from __future__ import annotations

import tomllib

import pytest

from hookproxy.jsonrpc.locate import read

JSON = """
{
  "hooks": {
    "PreToolUse": [
      { "matcher": "a{[,", "hooks": [ {"command": "x"},
        {"command": "y, } ]"} ] }, [],
      {}
    ], "Stop":
      -1.5e3
  },
  "a.b": { "c[0]": [ true, null ] },
  "\\u00e9": "\\"#"
}
"""

TOML = '''
# [[use]] is none
on_ask = "deny" # none = either
[[use]]
file = "a"

[[ hooks.PreToolUse ]]
command = """
[ -n "$X" ] || exit 2
timeout = 3 "" """""
timeout = 5

[[hooks.PreToolUse]]
argv = [
  "a", # ]
  'b',
]
env = { A = "1", "B.C" = '=' }
[hooks.PreToolUse.more]
at = 1979-05-27 07:32:00
x.y = [ { z = 1 },
  { z = 2 } ]
["odd name"."d\\u00e9j\\u00e0"]
here = true'''

YAML = """
# hooks: {}
defaults: &defaults
  timeout: 3
guard: &guard
  - command: x
agents:
  root:
    hooks:
      pre_tool_use:
        - <<: *defaults
          matcher: "a: b"
          hooks: *guard
        -
          hooks: [ {command: y},
            {command: z} ]
      1: text
"""


def line(path: str, text: str, key: str) -> int | None:
    place = read(path, text).find(key)
    return place.line if place else None


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("hooks", 3),
        ("hooks.PreToolUse", 4),
        ("hooks.PreToolUse[0]", 5),
        ("hooks.PreToolUse[0].hooks[0].command", 5),
        ("hooks.PreToolUse[0].hooks[1]", 6),
        ("hooks.PreToolUse[0].hooks[1].command", 6),
        ("hooks.PreToolUse[1]", 6),
        ("hooks.PreToolUse[2]", 7),
        ("hooks.Stop", 8),
        ("a.b.c[0][1]", 11),
        ("é", 12),
        ("hooks.PreToolUse[3]", None),
        ("hooks.PreTool", None),
        ("hooks.PreToolUse[0].hooks.command", None),
        ("hooks.PreToolUse.matcher", None),
        ("there", None),
    ],
)
def test_a_key_of_a_json_file_is_found(key: str, wanted: int | None) -> None:
    assert line("hooks.json", JSON, key) == wanted


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("on_ask", 3),
        ("use[0]", 4),
        ("use[0].file", 5),
        ("hooks.PreToolUse[0]", 7),
        ("hooks.PreToolUse[0].command", 8),
        ("hooks.PreToolUse[0].timeout", 11),
        ("hooks.PreToolUse[1].argv[1]", 16),
        ("hooks.PreToolUse[1].env.B.C", 18),
        ("hooks.PreToolUse[1].more", 19),
        ("hooks.PreToolUse[1].more.at", 20),
        ("hooks.PreToolUse[1].more.x.y[1].z", 22),
        ("odd name.déjà.here", 24),
        ("none", None),
        ("use[1]", None),
    ],
)
def test_a_key_of_a_toml_file_is_found(key: str, wanted: int | None) -> None:
    tomllib.loads(TOML)
    assert line("hookproxy.toml", TOML, key) == wanted


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("agents.root.hooks.pre_tool_use", 10),
        ("agents.root.hooks.pre_tool_use[0]", 11),
        ("agents.root.hooks.pre_tool_use[0].matcher", 12),
        ("agents.root.hooks.pre_tool_use[0].hooks", 13),
        ("agents.root.hooks.pre_tool_use[0].hooks[0].command", 6),
        ("agents.root.hooks.pre_tool_use[0].timeout", 4),
        ("agents.root.hooks.pre_tool_use[1]", 15),
        ("agents.root.hooks.pre_tool_use[1].hooks[1].command", 16),
        ("agents.root.hooks.1", 17),
        ("hooks", None),
    ],
)
@pytest.mark.parametrize("name", ["hooks.yaml", "hooks.yml"])
def test_a_key_of_a_yaml_file_is_found_at_its_anchor(name: str, key: str, wanted: int | None) -> None:
    assert line(name, YAML, key) == wanted


def test_a_byte_order_mark_and_other_line_ends_change_no_line() -> None:
    assert line("hooks.json", '\ufeff{\r\n"a":\r\n[\r\n1]}', "a[0]") == 4


def test_a_longer_name_is_found_before_a_shorter_one() -> None:
    text = '{"a": {"b": 1},\n"a.b": {"c": 2}}'
    assert (line("x.json", text, "a.b.c"), line("x.json", text, "a.b")) == (2, 2)
    assert line("x.json", '{"a": {"b": {"d": 1}},\n"a.b": {"c": 2}}', "a.b.d") == 1


def test_a_node_that_contains_itself_is_found_at_any_depth() -> None:
    text = "a: &a\n  b: *a\n  '': *a\n"
    assert line("x.yaml", text, "a.b.b.b") == 2
    assert line("x.yaml", text, "a.x") is None


@pytest.mark.parametrize("text", ["", "{", "[", '{"a"', '{"a" 1}', "[1", "a: [", "= 3", "[[a", "[" * 5_000, "a: *b"])
@pytest.mark.parametrize("path", ["x.json", "x.toml", "x.yaml"])
def test_a_text_that_cannot_be_read_has_no_lines(path: str, text: str) -> None:
    assert line(path, text, "b") is None
