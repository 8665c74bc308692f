"""`hookproxy init`: writes a small working configuration, with its hook, and shows what to do next.

The files are those of `configs/`, which tests run; a wheel contains them beside this package's modules. Existing files
are not overwritten, and nothing is written through a link. Exit status: 0 the files were written, 2 they were not.
"""

from __future__ import annotations

import os
import shlex
import shutil
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .common import create, show, working_directory
from .options import Parser
from .schema import SCHEMA

CONFIG: Final = "hookproxy.toml"
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_DIRECTIVE: Final = "#:schema "  # names the schema of a TOML file for editors (taplo, tombi)
_FAILS_CLOSED: Final = (
    'on_failure = "deny"  # calls are refused when a hook fails, whatever its own system says of that'
)


@dataclass(frozen=True, slots=True)
class Starter:
    """A configuration that `init` can write."""

    source: str
    """Its folder in configs/."""
    hooks: tuple[str, ...]
    """Its files beside hookproxy.toml."""
    requires: tuple[str, ...]
    """Programs that its hook needs."""
    description: str
    """What it does, for people."""
    next_command: tuple[str, ...] = ("check",)
    """The verb and arguments that show it at work; `--config` is added to them."""


STARTERS: Final = {
    "guard": Starter(
        "guard",
        ("hooks/guard.sh",),
        ("bash", "jq"),
        "refuses destructive commands and access to secret files",
        ("try", "execute", '{"command": "rm -rf build"}'),
    ),
    "audit": Starter("audit", (), (), "records every call, and refuses a call that it cannot record"),
    "rewrite": Starter(
        "rewrite",
        ("redact.py",),
        ("python3",),
        "removes keys and tokens from arguments",
        ("try", "post", '{"text": "my key is AKIAABCDEFGHIJKLMNOP"}'),
    ),
    "lint": Starter(
        "lint-after-write", ("hooks/lint.sh",), ("bash", "jq"), "shows the model the errors in a file that it wrote"
    ),
}
"""By their names on the command line; the first is the default."""


def main(arguments: Sequence[str]) -> int:
    """Write the files and show what to do next. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    starter = STARTERS[options.starter]
    folder = (
        user_config_folder() if options.user else os.path.normpath(os.path.join(working_directory(), options.folder))
    )
    write_starter(starter, folder, options.fail_closed)
    show(_report(starter, folder, options))
    return 0


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "init",
        "Write a small working configuration, with its hook. Existing files are not overwritten. "
        + " ".join(f"{name}: {starter.description}." for name, starter in STARTERS.items()),
    )
    parser.add_argument(
        "starter", nargs="?", choices=STARTERS, default=next(iter(STARTERS)), help="what to write (default: guard)"
    )
    location = parser.add_mutually_exclusive_group()
    location.add_argument(
        "--folder", metavar="FOLDER", default=".", help="the folder to write into (default: the working directory)"
    )
    location.add_argument(
        "--user", action="store_true", help="write into your own configuration folder, which is read without --config"
    )
    parser.add_argument(
        "--fail-closed",
        action="store_true",
        help="refuse calls when a hook fails, including hooks of other systems' files that are added later",
    )
    return parser


def starters() -> Path:
    """The folder with the files to copy: in an installed package, or in a checkout."""
    packaged = _PACKAGE / "configs"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "configs"


def user_config_folder() -> str:
    """The folder whose hookproxy.toml is read without `--config`."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the XDG specification says to ignore a relative path
        folder = os.path.expanduser("~/.config")
    return os.path.join(folder, "hookproxy")


def write_starter(starter: Starter, folder: str, fails_closed: bool = False) -> tuple[dict[str, str], list[str]]:
    """Write the files of a starter into the folder, the configuration last, or none of them.

    Returns their texts by their paths, and the folders that were made for them. Raises UserError.
    """
    contents = {name: _content(starter, name) for name in (*starter.hooks, CONFIG)}
    if fails_closed:
        start, table, rest = contents[CONFIG].partition("\n[")
        contents[CONFIG] = f"{start}\n{_FAILS_CLOSED}\n{table}{rest}"
    paths = {os.path.join(folder, name): text for name, text in contents.items()}
    return paths, create(paths, "choose another folder with --folder, or move that file", folder)


def _content(starter: Starter, name: str) -> str:
    text = (starters() / starter.source / name).read_text("utf-8")
    if not text.startswith(_DIRECTIVE):
        return text
    return schema_directive() + text.partition("\n")[2]


def schema_directive() -> str:
    """The first line of a hookproxy.toml, by which editors find the installed schema."""
    return f"{_DIRECTIVE}{SCHEMA.as_uri()}\n"


def _report(starter: Starter, folder: str, options: Namespace) -> str:
    """The output: what was written, which programs are missing, and the next commands."""
    shown_folder = os.path.relpath(folder, working_directory()) if not options.user else folder
    config = os.path.normpath(os.path.join(shown_folder, CONFIG))
    lines = [f"wrote {os.path.normpath(os.path.join(shown_folder, name))}" for name in (*starter.hooks, CONFIG)]
    missing = [program for program in starter.requires if shutil.which(program) is None]
    if missing:
        lines.append(f"missing: {starter.hooks[0]} fails without {' and '.join(missing)}")
    source = "" if options.user else f" --config {shlex.quote(config)}"
    lines += [
        "",
        f"next: hookproxy {shlex.join(starter.next_command)}{source}",
        f"then: hookproxy wrap FILE{source}",
        "FILE is your agent's configuration, or the agent's name; hookproxy wrap alone lists what is on this machine",
    ]
    return "\n".join(lines) + "\n"
