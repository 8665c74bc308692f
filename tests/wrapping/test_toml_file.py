"""TOML: servers in every layout are wrapped and restored exactly; what cannot be edited is refused."""

from __future__ import annotations

import tomllib

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping import edit_plan
from tests.wrapping.roundtrip import OPTIONS, argv, launcher, unwrapped, wrapped

LAYOUTS = [
    '[mcp_servers.a]\ncommand = "npx"\nargs = ["-y", "x"]\n',
    '# top\nmodel = "m" # here\n\n[mcp_servers.a] # why\ncommand = "npx" # this\n# end\n[mcp_servers.a.env]\nK=1\n',
    '[mcp_servers.a]\ncommand = "npx"',
    '[mcp_servers.a]\r\n  command\t=\t"npx"\r\n\r\n[other]\r\nx = 1\r\n',
    "[mcp_servers.a]\nargs = []\ncommand = 'C:\\x'\n",
    '[mcp_servers.a]\ncommand = "npx"\nargs = [ # those\n    "-y", # y\n    \'x\',\n]\nenabled = false\n',
    '[mcp_servers.a]\ncommand = "npx"\nargs = [\n  "-y",\n  """two\nlines""",\n  \'\'\'x\'\'\'\n  ]\n',
    '[mcp_servers]\na = { command = "npx", args = ["x"], env = { "K" = "v" } }\nb = {command="y"}\n',
    'mcp_servers.a.command = "npx"\nmcp_servers.a.args = ["x"]\nmcp_servers."b c".command = "y"\n',
    '[mcp_servers."b c"]\n"command" = "npx"\n[mcp_servers.\'d.e\']\ncommand = "npx"\nargs = ["-"]\n',
    '[mcp_servers.a]\ncommand = "npx"\n[other]\nx = 1\n[mcp_servers.b]\ncommand = "y"\nargs = ["z"]\n[[list]]\nn = 1\n',
    '[mcp_servers.a.env]\nK = "v"\n[mcp_servers.a]\nurl = ""\ncommand = "n\\u0070x"\n',
    '[mcp_servers.far]\nurl = "https://x"\n[mcp_servers.a]\ncommand = "npx"\ndate = 1979-05-27T07:32:00Z\n',
    '\ufeff[mcp_servers.a]\ncommand = "npx"\nargs = ["ä🚀"]\n',
    'mcp_servers = { a = { command = "npx" } }\n',
    'mcp_servers = { a = { x = "}", args = ["]", "#"], command = "npx" }, b = { y.z = [1, [2]], command = "y" } }\n',
    '[mcp_servers.a]\nd = 1979-05-27 07:32:00\nx = [[1], # ]\n {x = "}"}]\ncommand="z"\n[[mcp_servers.a.y]]\nz = 1\n',
    'mcp_servers.a.x.command = 1\nmcp_servers.b.command = "y"\nmcp_servers.a.command = "z"\nmcp_servers.b.args = []\n',
    '[mcp_servers.a]\ncommand = """npx"""\nargs = ["""a"b""", """c\\"""", "#", "]", \'"\', "\\\\"]\n',
]


@pytest.mark.parametrize("text", LAYOUTS)
def test_wrapping_can_be_undone_to_the_byte(text: str) -> None:
    new = wrapped("config.toml", text)
    before, after = tomllib.loads(text.removeprefix("\ufeff")), tomllib.loads(new.removeprefix("\ufeff"))
    for servers in (before.pop("mcp_servers"), after.pop("mcp_servers")):
        for server in servers.values():
            server.pop("command", None), server.pop("args", None)
    assert after == before


def test_a_server_without_arguments_gets_a_new_line_below_its_command() -> None:
    text = '[mcp_servers.a]\n  command = "npx" # this\n  # end\n'
    assert wrapped("config.toml", text) == (
        '[mcp_servers.a]\n  command = "/opt/hooks/bin/hookproxy" # this\n'
        '  args = ["run", "--name", "a", "--config", "/etc/hooks.toml", "--", "npx"]\n  # end\n'
    )


def test_later_changes_by_others_are_kept() -> None:
    new = wrapped("config.toml", '[mcp_servers.a]\ncommand = "npx"\nargs = ["x"]\n')
    later = new.replace('"x"]', '"x", "later"]\nenabled = false') + '# more\n[mcp_servers.b]\ncommand = "y"\n'
    assert unwrapped("config.toml", later) == (
        '[mcp_servers.a]\ncommand = "npx"\nargs = ["x", "later"]\nenabled = false\n# more\n'
        '[mcp_servers.b]\ncommand = "y"\n'
    )


def test_a_name_that_needs_quotes_gets_them() -> None:
    new = wrapped("config.toml", '[mcp_servers."a\\"\\u0001\\u007f"]\ncommand = \'x\'\n')
    assert argv("config.toml", new)['mcp_servers.a"\\x01\\x7f'][3] == 'a"\x01\x7f'


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x = ", "config.toml:1: not TOML"),
        ('[mcp_servers.a]\ncommand = "x"\ncommand = "y"\n', "config.toml:3: not TOML"),
        ('[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a]\nargs = []\n', "not TOML"),
        ('[mcp_servers.a]\ncommand = ["x", 1]\n', "must be a string"),
        ('[mcp_servers.a]\ncommand = "x"\nargs = "y"\n', "mcp_servers.a.args must be a list of strings"),
        ('[mcp_servers.a]\ncommand = "x"\nargs = [1]\n', "mcp_servers.a.args must be a list of strings"),
        ("[mcp_servers]\na = 1\n", "must hold a server"),
        ("mcp_servers = 1\n", "has no servers under any known key"),
        ("[mcp_servers]\n", "there are no servers in it"),
        ("x = " + "[" * 100_000, "config.toml"),
        ("x = 1\n\0", "not TOML"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(text: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        edit_plan.wrap(edit_plan.read("config.toml", text), (), launcher, OPTIONS)
    assert what in str(caught.value)
