"""YAML: servers in simple layouts are wrapped and restored exactly; others are refused."""

from __future__ import annotations

import pytest
import yaml

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping import edit_plan
from tests.wrapping.roundtrip import OPTIONS, argv, launcher, unwrapped, wrapped

LAYOUTS = [
    "extensions:\n  a:\n    cmd: npx\n    args:\n      - -y\n      - x\n    enabled: true\n",
    "extensions:\n  a:\n    args:\n    - -y\n    - x\n    cmd: npx\n    type: stdio\n",
    "# top\nGOOSE_MODEL: m # here\nextensions: # all\n  a: # why\n    cmd: npx # this\n    args: [] # none\n",
    "extensions:\n  a:\n    type: stdio\n    cmd: npx",
    "extensions:\n  a:\n    cmd: npx\n    args: [-y, 'x', \"z\"]\n    timeout: 300\n    enabled: false\n",
    "extensions:\n  a:\n    cmd: npx\n    args: [\n      -y,\n      x,\n    ]\n  b: {cmd: y, args: [z]}\n  c: {cmd: y}",
    "extensions:\r\n  a:\r\n    cmd: 'np''x'\r\n    args:\r\n      - x\r\n  dev:\r\n    type: builtin\r\n",
    'extensions:\n  "a b":\n    "cmd": "n\\u0070x"\n    args:\n      # first\n      - "x" # x\n      # last\n\nz: 1\n',
    "extensions:\n  a:\n    cmd: npx\n    args:\n\n      - '- -'\n",
    "extensions:\n  far:\n    type: sse\n    uri: https://x\n  a:\n    cmd: npx\n    args: ['ä🚀', '#', '- x']\n",
    "\ufeffextensions:\n  a:\n    cmd: npx\n",
    "anchors: &x {k: 1}\nextensions:\n  a:\n    cmd: npx\n    envs: *x\n",
    "{extensions: {a: {cmd: npx, args: [x]}}}\n",
    '{"extensions": {"a": {"args": ["x"], "cmd": "npx"}, "b": {"cmd":"x"}}}\n',
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_wrapping_can_be_undone_to_the_byte(text: str) -> None:
    new = wrapped("config.yaml", text)
    before, after = yaml.safe_load(text), yaml.safe_load(new)
    for servers in (before.pop("extensions"), after.pop("extensions")):
        for server in servers.values():
            server.pop("cmd", None), server.pop("args", None)
    assert after == before


def test_a_block_list_stays_a_block_list() -> None:
    text = "extensions:\n  a:\n    cmd: npx\n    args:\n    - -y # yes\n"
    new = wrapped("config.yaml", text)
    assert new.startswith(
        'extensions:\n  a:\n    cmd: "/opt/hooks/bin/hookproxy"\n    args:\n    - "run"\n    - "--name"\n'
    )
    assert new.endswith('    - "--"\n    - npx\n    - -y # yes\n')


@pytest.mark.parametrize("args", ["", "    args: []\n", "    args: [x]\n"])
def test_a_file_that_goose_rewrote_is_unwrapped_to_the_same_values(args: str) -> None:
    text = f"extensions:\n  a:\n    cmd: npx\n{args}    enabled: true\n"
    new = wrapped("config.yaml", text)
    for flow in (False, None, True):
        rewritten = yaml.safe_dump(yaml.safe_load(new), default_flow_style=flow)
        assert yaml.safe_load(unwrapped("config.yaml", rewritten)) == yaml.safe_load(text)


def test_a_name_that_needs_quotes_gets_them() -> None:
    new = wrapped("config.yaml", 'extensions:\n  "a\\"\\x01\\u2028\\U0001F511":\n    cmd: x\n')
    assert argv("config.yaml", new)['extensions.a"\\x01\\u2028🔑'][3] == 'a"\x01\u2028🔑'


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("extensions: [", "not YAML"),
        ("extensions:\n  a: {cmd: x}\n  a: {cmd: y}\n", "config.yaml:3: the key 'a' appears twice"),
        ("extensions: {}\nextensions: {}\n", "config.yaml:2: the key 'extensions' appears twice"),
        ("extensions:\n  a:\n    cmd: 1\n", "extensions.a.cmd must be a string"),
        ("extensions:\n  a:\n    cmd: x\n    args: [1]\n", "extensions.a.args must be a list of strings"),
        ("extensions:\n  a: x\n", "must hold a server"),
        ("x: &x npx\nextensions:\n  a:\n    cmd: *x\n", "config.yaml:4: extensions.a.cmd has an anchor"),
        ("extensions:\n  a:\n    cmd: &x npx\n", "has an anchor, an alias or a tag"),
        ("extensions:\n  a:\n    cmd: !!str npx\n", "has an anchor, an alias or a tag"),
        ("extensions:\n  a:\n    cmd: npx\n    args: &x\n    - a\n", "has an anchor, an alias or a tag"),
        ("extensions:\n  a: &a {cmd: npx}\n  b: *a\n", "refers to another place"),
        ("x: &x {cmd: npx}\nextensions:\n  a:\n    <<: *x\n", "includes members from another place"),
        ("x: &x {a: {cmd: npx}}\nextensions:\n  <<: *x\n", "refers to another place"),
        ("extensions:\n  a:\n    cmd: |\n      npx\n", "spans several lines"),
        ("extensions:\n  a:\n    cmd: np\n      x\n", "spans several lines"),
        ("extensions:\n  a:\n    cmd: x, [y\n    args: [z]\n", "cannot be edited safely"),
        ("extensions:\n  a: &a {cmd: npx}\nother: *a\n", "cannot be edited safely"),
        ("x: &x z\nextensions:\n  a:\n    cmd: npx\n    args:\n    - y\n    - *x\n", "refers to another place"),
        ("extensions: " + "[" * 100_000, "config.yaml"),
        ("--- 1\n--- 2\n", "config.yaml"),
        ("x: \0\n", "config.yaml"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(text: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        edit_plan.wrap(edit_plan.read("config.yaml", text), (), launcher, OPTIONS)
    assert what in str(caught.value)
