"""JSON with comments: what is read, what is refused, and edits that can be undone exactly."""

from __future__ import annotations

import json

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping.json_file import JSON, MAX_DEPTH, read
from hookproxy.wrapping.syntax_tree import apply_edits, plain_value
from tests.wrapping.roundtrip import unwrapped, wrapped

LAYOUTS = [
    '{"mcpServers":{"a":{"command":"npx","args":["-y","x"]}}}',
    '{"mcpServers":{"a":{"command":"npx"}}}',
    '{"mcpServers": {"a": {"command": "npx", "args": []}}}',
    '{"mcpServers": {"a": {"args": [ ], "command": "npx"}}}',
    '{"mcpServers": {"a": {"args": [/* none */], "command": "npx"}}}',
    '{"mcpServers": {"a": {"command" : "n\\u0070x"  , "args": [ "-y" , "\\/x" ] , }, }, }',
    '{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"command": "npx",\r\n\t\t\t"args": [\r\n\t\t\t\t"-y"]}}}\r\n',
    '\ufeff{"mcpServers": {"a": {"env": {"K": "v"}, "command": "npx", "cwd": "/", "type": "stdio"}}}\n\n',
    '// first\n{"mcpServers": {"a": {\n  // why\n  "command": "npx" // this one\n  // end\n}}} // last',
    '{"mcpServers": {"a": {\n  "command": "npx", // this one\n  /* and */ "args": [ // those\n    "x" // x\n  ]\n}}}',
    '{"mcpServers": {"ключ 🔑": {"command": "/opt/ä b/🚀", "args": ["--", "run", "--name"]}}}',
    '{"mcpServers": {"a": {"command": "cmd", "args": ["/c", "npx", "x"], "disabled": true}}, "n": [1e400, -0, 1.50]}',
    '{"mcpServers": {"-dash": {"command": "npx", "args": ["x"]}, "": {"command": "npx"}}}',
    '{"context_servers": {"old": {"command": {"path": "/bin/x", "args": ["a"], "env": {}}, "settings": {}}}}',
    '{"context_servers": {"old": {"command": {\n  "path": "/bin/x"\n}}}}',
    '{"mcp": {"a": {"type": "local", "command": ["npx", "x"], "enabled": true}, "b": {"command": [\n "y"\n]}}}',
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_wrapping_can_be_undone_to_the_byte(text: str) -> None:
    wrapped("x.json", text)


def test_only_command_and_args_change_and_the_layout_stays() -> None:
    text = '{"mcpServers": {"a": {\n      "command": "npx", // why\n      "args": [\n        "-y"\n      ]\n}}}\n'
    assert wrapped("x.json", text) == text.replace('"npx"', '"/opt/hooks/bin/hookproxy"').replace(
        '        "-y"',
        "\n".join(f'        "{word}",' for word in ("run", "--name", "a", "--config", "/etc/hooks.toml", "--", "npx"))
        + '\n        "-y"',
    )


def test_a_server_without_arguments_gets_them_beside_its_command() -> None:
    text = '{"mcpServers": {\n  "a": {\n    "command": "x",\n    "env": {}\n  }}}'
    new = wrapped("x.json", text)
    assert '\n    "args": ["run", "--name", "a", "--config", "/etc/hooks.toml", "--", "x"],\n    "env"' in new


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("sort", [False, True])
def test_a_file_that_an_agent_rewrote_is_unwrapped_to_the_same_values(indent: int | None, sort: bool) -> None:
    servers = {
        "plain": {"command": "npx", "args": ["-y"], "env": {"A": "b"}},
        "none": {"command": "x"},
        "only": {"env": {}, "command": "x", "z": 1},
        "empty": {"command": "x", "args": []},
    }
    text = json.dumps({"mcpServers": servers})
    rewritten = json.dumps(json.loads(wrapped("x.json", text)), indent=indent, sort_keys=sort)
    assert json.loads(unwrapped("x.json", rewritten)) == {"mcpServers": servers}


def test_a_formatter_may_add_a_trailing_comma() -> None:
    new = wrapped("x.json", '{"mcpServers": {"a": {"command": "x", "args": []}}}')
    assert unwrapped("x.json", new.replace('"x"]', '"x" ,]')) == '{"mcpServers": {"a": {"command": "x", "args": []}}}'


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "it is empty"),
        ("[]", 1, "must begin with `{`"),
        ('{"a": 1', 1, "ends too early"),
        ('{\n"a": }', 2, "a value is expected"),
        ('{\n"a" 1}', 2, "`:` is expected"),
        ('{"a": 1\n"b": 2}', 2, "`,` or `}`"),
        ('{"a": [1\n2]}', 2, "`,` or `]`"),
        ("{\n'a': 1}", 2, "a key in quotation marks"),
        ('{"a": 1,,}', 1, "a key in quotation marks"),
        ('{"a": NaN}', 1, "'NaN' is not a value"),
        ('{"a": 01}', 1, "is not a value"),
        ('{"a": yes}', 1, "is not a value"),
        ('{"a": "x\ny"}', 1, "a string is not closed"),
        ('{"a": "x\0"}', 1, "control character"),
        ('{"a": "\\x"}', 1, "an unknown escape"),
        ('{"a": "x}', 1, "a string is not closed"),
        ('{"a": 1} /* x', 1, "this comment is not closed"),
        ('{"a": 1}\n{}', 2, "text after its end"),
        ('{\n"a": 1,\n"\\u0061": 2}', 3, "the key 'a' appears twice"),
        ('{"x": {"mcpServers": 1,\n"mcpServers": 2}}', 2, "appears twice"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read("x.json", text)
    assert str(caught.value).startswith(f"error: x.json:{line}: ")
    assert what in str(caught.value)


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_what_is_nested_too_deep_is_refused(brackets: str) -> None:
    inner = '{"a":' if brackets == "{}" else "["
    deep = '{"a":' + inner * 100_000
    with pytest.raises(ConfigError, match=f"nested more than {MAX_DEPTH} levels deep"):
        read("x.json", deep)
    levels = MAX_DEPTH - 1
    fits = '{"a":' + inner * levels + ("1" if brackets == "{}" else "") + brackets[1] * levels + "}"
    read("x.json", fits)


@pytest.mark.slow
def test_a_large_file_is_read_fast() -> None:
    read("x.json", '{"a": [' + '"x", ' * 200_000 + "1]}" + "// x\n" * 100_000 + "/*" + "*" * 1_000_000 + "*/")
    with pytest.raises(ConfigError, match="is not closed"):
        read("x.json", '{"a": "' + "\\\\" * 500_000)


def test_a_member_is_removed_with_its_comma() -> None:
    text = '{"a": 1, "b": 2, "c": 3}'
    tree = read("x.json", text)
    for member in tree.members:
        left = read("x.json", apply_edits(text, [JSON.remove_member(text, tree, member)]))
        assert plain_value(left) == {key: value for key, value in plain_value(tree).items() if key != member.key}  # type: ignore[attr-defined]  # an object, by its text
