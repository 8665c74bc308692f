"""What `hookproxy init allow-list` and `init flow` share.

Both ask a server for its tools, and what they propose goes into a hookproxy.toml, where all stays that it says already.
"""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..checks.server_description import DESCRIBE_SECONDS
from ..config.parse import parse
from ..lock.description import Kind
from ..model.counts import counted
from ..model.errors import UserError, printable
from ..model.hooks import Tool
from .common import create, tell, working_directory
from .hook_runtime import run_until_done
from .layout import Page, label
from .options import Parser, add_remote_options, parse_with_command
from .own_file import CONFIG, schema_directive, user_config_folder
from .progress import waiting

if TYPE_CHECKING:
    from ..checks.server_description import Described
    from ..config.models import ConfigFile

_MOST_SHOWN: Final = 12  # names of tools in a row: a screen has room for them, and the file has all
_LONGEST_SHOWN: Final = 40  # characters of a tool's name, which a server has chosen


class Present(Struct, frozen=True):
    """The configuration that a proposal goes into."""

    path: str
    text: str | None
    """None: there is none yet."""
    config: ConfigFile | None
    """What it says."""


class Asked(Struct, frozen=True):
    """What a server says of its tools."""

    tools: tuple[Tool, ...]
    descriptions: dict[str, str]
    """By the names of tools; those without one are missing."""
    name: str
    """The server's, as hooks see it."""
    server_info: str
    """The name that it gives itself."""


class Request(Struct, frozen=True):
    """What the command line says."""

    options: Namespace
    command: tuple[str, ...]
    """Empty: the server is at an address."""
    cwd: str

    @property
    def only_server(self) -> str:
        """The server that the proposal is about; empty: every one, as none was named."""
        return self.options.name or ""


def build_parser(name: str, description: str) -> Parser:
    """The parser of the command line of `hookproxy init NAME`."""
    parser = Parser(
        f"init {name}",
        description,
        rest="[-- COMMAND [ARG...]]",
        hint=f"write -- before the server's command line: hookproxy init {name} -- COMMAND [ARG...]",
    )
    location = parser.add_mutually_exclusive_group()
    location.add_argument(
        "--folder", metavar="FOLDER", default=".", help="the folder to write into (default: the working directory)"
    )
    location.add_argument(
        "--user", action="store_true", help="write into your own configuration folder, which is read without --config"
    )
    parser.add_argument(
        "--name", help="the server's name as hooks see it: what is written is then about this server only"
    )
    add_remote_options(parser)
    return parser


def read_request(parser: Parser, arguments: Sequence[str], question: str, name: str) -> Request:
    """Read a command line, which names one server. Raises UserError, with the `question` that it leaves open."""
    options, command = parse_with_command(parser, arguments)
    if bool(command) is (options.url is not None):
        raise UserError(
            f"{question} there is no server" if not command else "--url and COMMAND are two servers",
            f"hookproxy init {name} -- COMMAND [ARG...], with the command line that your agent has for it",
        )
    return Request(options, tuple(command), working_directory())


def read_present(request: Request) -> Present:
    """Read the configuration that is there. Raises UserError."""
    own = request.options.user
    folder = user_config_folder() if own else os.path.normpath(os.path.join(request.cwd, request.options.folder))
    path = os.path.join(folder, CONFIG)
    if not os.path.lexists(path):
        return Present(path, None, None)
    if os.path.islink(path):
        raise UserError(f"{path} is a link", "nothing was written; choose the folder of the file itself with --folder")
    from ..wrapping import files

    text = files.read(path).text
    return Present(path, text, parse(path, text.removeprefix("\ufeff")))


def ask_server(request: Request) -> Asked:
    """Ask the server for its tools. Raises UserError."""
    from . import lock_targets

    options = Namespace(**vars(request.options))  # it notes the name that follows from an address
    target = lock_targets.of_line(options, request.command, request.cwd).targets[0]
    tell(f"asking {printable(target.what)} for its tools, for at most {DESCRIBE_SECONDS:g} seconds")
    with waiting(f"the tools of {target.name}"):
        described: Described = run_until_done(partial(target.ask, DESCRIBE_SECONDS))
    tell(*described.notes, *described.withheld)
    return Asked(*_tools(described), target.name, described.description.identity.name)


def _tools(described: Described) -> tuple[tuple[Tool, ...], dict[str, str]]:
    from ..jsonrpc import raw_json
    from ..protocol import tool_list

    entries = [entry for (kind, _), entry in described.description.entries.items() if kind is Kind.TOOL]
    page = b'{"result":{"tools":[' + b",".join(entry.text for entry in entries) + b"]}}"
    assert raw_json.fields(page), "canonical texts are JSON"
    texts = ((entry.name, entry.members().get("description")) for entry in entries)
    return tuple(tool_list.listed_tools(page)), {name: text for name, text in texts if isinstance(text, str)}


def write(present: Present, addition: str, source: str) -> tuple[str, ...] | None:
    """Write the proposal. Returns what the file that was there has got; None: there was none. Raises UserError."""
    if present.text is None:
        parse(present.path, addition)
        folder = os.path.dirname(present.path)
        create({present.path: schema_directive() + addition}, "choose another folder with --folder", folder)
        return None
    from ..wrapping import files
    from ..wrapping.merge_toml import merge

    snapshot = files.read(present.path)
    merged = merge(present.path, snapshot.text, addition, source)
    parse(present.path, merged.text.removeprefix("\ufeff"))
    if merged.added:
        files.replace(snapshot, merged.text)
    return merged.added


# --- what is shown ---


def shown_path(present: Present, request: Request) -> str:
    """The path of the configuration, for people."""
    return present.path if request.options.user else os.path.relpath(present.path, request.cwd)


def show_written(page: Page, shown: str, added: Sequence[str] | None) -> None:
    """Say what has become of the file; `added` is as `write` returns it."""
    if added is None:
        page.line(f"wrote {shown}")
    else:
        page.line(f"added to {shown}: {', '.join(added)}" if added else f"as it is: {shown}")


def show_tools(page: Page, name: str, tools: Sequence[str], why: str) -> None:
    """A row with the names of tools, if there are some."""
    if tools:
        names = [f"{tool[:_LONGEST_SHOWN]}{'…' * (len(tool) > _LONGEST_SHOWN)}" for tool in tools[:_MOST_SHOWN]]
        more = f" and {counted(len(tools) - _MOST_SHOWN, 'other')}" if len(tools) > _MOST_SHOWN else ""
        page.row(label(name), f"{', '.join(names)}{more} ({why})", prose=True)


def show_unnamed(page: Page, name: str, tools: Sequence[str]) -> None:
    """The row of tools whose names are not names in a rule: as texts, since a server has chosen them."""
    show_tools(page, name, [printable(repr(tool)) for tool in tools], "no rule can name them exactly")


def show_next(page: Page, shown: str, request: Request, edit: str) -> None:
    """What to do next; `edit` is what a person does in the file."""
    source = "" if request.options.user else f" --config {shlex.quote(shown)}"
    named = f" --name {shlex.quote(request.only_server)}" if request.only_server else ""  # rules have this name
    server = f"{named} -- {shlex.join(request.command)}" if request.command else ""
    page.line()
    page.line(f"next: edit {shown}: {edit}")
    page.line(f"then: hookproxy check{source}{server}")
    page.line(f"then: hookproxy wrap FILE{source}")
    page.line("FILE is your agent's configuration, or its name; hookproxy wrap alone lists what is on this machine")
    if named:
        page.line(f"there, too, the server must be called {printable(request.only_server)}: rules are about this name")
