"""`hookproxy init allow-list -- COMMAND`: starts the server, lists its tools, and writes which of them may be called.

Read-only tools are allowed, about the others a person is asked, and all else is refused (`checks.allow_list`). What a
hookproxy.toml says already stays. Exit status: 0 the rules are there, 2 they are not.
"""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..checks import allow_list
from ..checks.allow_list import AllowList
from ..checks.server_description import DESCRIBE_SECONDS
from ..config.parse import parse
from ..lock.description import Kind
from ..model.counts import counted
from ..model.errors import UserError, printable
from ..model.hooks import Tool
from .common import create, parse_with_command, show, tell, working_directory
from .hook_runtime import run_until_done
from .layout import Page, label, new_page
from .options import Parser, add_remote_options
from .own_file import CONFIG, schema_directive, user_config_folder

if TYPE_CHECKING:
    from ..checks.server_description import Described

NAME: Final = allow_list.SOURCE
_MOST_SHOWN: Final = 12  # names of tools in a row: a screen has room for them, and the file has all
_LONGEST_SHOWN: Final = 40  # characters of a tool's name, which a server has chosen


def main(arguments: Sequence[str]) -> int:
    """Ask the server, write the rules, and show what to do next. Returns the exit status."""
    options, command = parse_with_command(build_parser(), arguments)
    if bool(command) is (options.url is not None):
        raise UserError(
            "whose tools may be called? there is no server" if not command else "--url and COMMAND are two servers",
            "hookproxy init allow-list -- COMMAND [ARG...], with the command line that your agent has for it",
        )
    cwd = working_directory()
    folder = user_config_folder() if options.user else os.path.normpath(os.path.join(cwd, options.folder))
    path = os.path.join(folder, CONFIG)
    text, known = _present(path)
    described, name = _ask(options, command, cwd)
    tools = _tools(described)
    if not tools:
        raise UserError("the server lists no tools, so there is nothing to allow", "nothing was written")
    server_info = described.description.identity.name
    own_name = options.name is not None
    rules = allow_list.propose(tools, command, name, server_info, with_server=own_name, known=known)
    added = _write(path, text, rules)
    if wide := sorted(rule for rule in known if set(rule.partition("(")[0]) & set("*?[")):
        tell(f"rules that stood in the file name more tools than one, and hold as before: {', '.join(wide)}")
    show(_report(rules, added, path, options, command, cwd))
    return 0


def build_parser() -> Parser:
    """The parser of this command line."""
    parser = Parser(
        f"init {NAME}",
        "Start the server with COMMAND, list its tools, and write a hookproxy.toml in which only these may be called: "
        "its read-only tools at once, the others after a person has said yes. A hookproxy.toml that is there keeps "
        "what it says.",
        rest="[-- COMMAND [ARG...]]",
        hint="write -- before the server's command line: hookproxy init allow-list -- COMMAND [ARG...]",
    )
    location = parser.add_mutually_exclusive_group()
    location.add_argument(
        "--folder", metavar="FOLDER", default=".", help="the folder to write into (default: the working directory)"
    )
    location.add_argument(
        "--user", action="store_true", help="write into your own configuration folder, which is read without --config"
    )
    parser.add_argument(
        "--name", help="the server's name as hooks see it: the rules are then about this server only (mcp__NAME__TOOL)"
    )
    add_remote_options(parser)
    return parser


def _present(path: str) -> tuple[str | None, set[str]]:
    """The text of the configuration that is there, and its rules; None: there is none. Raises UserError."""
    if not os.path.lexists(path):
        return None, set()
    if os.path.islink(path):
        raise UserError(f"{path} is a link", "nothing was written; choose the folder of the file itself with --folder")
    from ..wrapping import files

    text = files.read(path).text
    permissions = parse(path, text.removeprefix("\ufeff")).permissions
    return text, {*permissions.allow, *permissions.ask, *permissions.deny}


def _ask(options: Namespace, command: Sequence[str], cwd: str) -> tuple[Described, str]:
    """What the server says of itself, and its name. Raises UserError."""
    from . import lock_targets

    options_of_target = Namespace(**vars(options))  # it notes the name that follows from an address
    target = lock_targets.of_line(options_of_target, command, cwd).targets[0]
    tell(f"asking {printable(target.what)} for its tools, for at most {DESCRIBE_SECONDS:g} seconds")
    described: Described = run_until_done(partial(target.ask, DESCRIBE_SECONDS))
    tell(*described.notes, *described.withheld)
    return described, target.name


def _tools(described: Described) -> list[Tool]:
    from ..jsonrpc import raw_json
    from ..protocol import tool_list

    texts = [entry.text for (kind, _), entry in described.description.entries.items() if kind is Kind.TOOL]
    page = b'{"result":{"tools":[' + b",".join(texts) + b"]}}"
    assert raw_json.fields(page), "canonical texts are JSON"
    return list(tool_list.listed_tools(page))


def _write(path: str, text: str | None, rules: AllowList) -> tuple[str, ...] | None:
    """Write the rules. Returns what the file that was there has got; None: there was none. Raises UserError."""
    addition = allow_list.text_of(rules)
    if text is None:
        parse(path, addition)
        folder = os.path.dirname(path)
        create({path: schema_directive() + addition}, "choose another folder with --folder", folder)
        return None
    from ..wrapping import files
    from ..wrapping.merge_toml import merge

    snapshot = files.read(path)
    merged = merge(path, snapshot.text, addition, NAME)
    parse(path, merged.text.removeprefix("\ufeff"))
    if merged.added:
        files.replace(snapshot, merged.text)
    return merged.added


def _report(
    rules: AllowList,
    added: tuple[str, ...] | None,
    path: str,
    options: Namespace,
    command: Sequence[str],
    cwd: str,
) -> str:
    shown = path if options.user else os.path.relpath(path, cwd)
    page = new_page()
    if added is None:
        page.line(f"wrote {shown}")
    else:
        page.line(f"added to {shown}: {', '.join(added)}" if added else f"as it is: {shown}")
    _row(page, "allow", rules.allow, "they only read")
    _row(page, "ask", rules.ask, "a person must say yes")
    _row(page, "known", rules.known, "the file has a rule for them, which stays")
    _row(page, "refused", [printable(repr(name)) for name in rules.unnamed], "no rule can name them exactly")
    page.row(label("rest"), "tools that no rule of the file is about are refused, and the agent does not see them")
    source = "" if options.user else f" --config {shlex.quote(shown)}"
    server = f" -- {shlex.join(command)}" if command else ""
    page.line()
    page.line(f"next: edit {shown}: move tools between allow and ask, or remove them")
    page.line(f"then: hookproxy check{source}{server}")
    page.line(f"then: hookproxy wrap FILE{source}")
    page.line("FILE is your agent's configuration, or its name; hookproxy wrap alone lists what is on this machine")
    return page.text


def _row(page: Page, name: str, tools: Sequence[str], why: str) -> None:
    if tools:
        names = [f"{tool[:_LONGEST_SHOWN]}{'…' * (len(tool) > _LONGEST_SHOWN)}" for tool in tools[:_MOST_SHOWN]]
        more = f" and {counted(len(tools) - _MOST_SHOWN, 'other')}" if len(tools) > _MOST_SHOWN else ""
        page.row(label(name), f"{', '.join(names)}{more} ({why})")
