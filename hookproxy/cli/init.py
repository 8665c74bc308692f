"""`hookproxy init`: writes a small working configuration, with its hook, and shows what to do next.

The files are those of `configs/`, which tests run; a wheel contains them beside this package's modules. Existing files
are not overwritten, and nothing is written through a link. Exit status: 0 the files were written, 2 they were not.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..model.errors import UserError
from .common import show, working_directory
from .options import Parser
from .schema import SCHEMA

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy init [guard|audit|rewrite|lint] [--folder FOLDER | --user] [--fail-closed]"

CONFIG: Final = "hookproxy.toml"
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_DIRECTIVE: Final = "#:schema "  # names the schema of a TOML file for editors (taplo, tombi)
_FAILS_CLOSED: Final = (
    'on_failure = "deny"  # calls are refused when a hook fails, whatever its own system says of that'
)
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


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
        USAGE,
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
        help="calls are refused when a hook fails, also one of another system's file that is added later",
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


def write_starter(starter: Starter, folder: str, fails_closed: bool = False) -> dict[str, str]:
    """Write the files of a starter into the folder, or none of them. Returns their texts. Raises UserError."""
    contents = {name: _content(starter, name) for name in (*starter.hooks, CONFIG)}
    if fails_closed:
        start, table, rest = contents[CONFIG].partition("\n[")
        contents[CONFIG] = f"{start}\n{_FAILS_CLOSED}\n{table}{rest}"
    _write(folder, contents)
    return contents


def _content(starter: Starter, name: str) -> str:
    text = (starters() / starter.source / name).read_text("utf-8")
    if not text.startswith(_DIRECTIVE):
        return text
    return schema_directive() + text.partition("\n")[2]


def schema_directive() -> str:
    """The first line of a hookproxy.toml, by which editors find the installed schema."""
    return f"{_DIRECTIVE}{SCHEMA.as_uri()}\n"


def _write(folder: str, contents: dict[str, str]) -> None:
    """Write all files, the configuration last, or none of them. Raises UserError."""
    try:
        os.makedirs(folder, exist_ok=True)
        with _open_folder(folder) as folder_fd:
            _refuse_to_overwrite(folder, contents, folder_fd)
            written: list[str] = []
            try:
                for name, text in contents.items():
                    _create(folder_fd, name, text, written)
            except BaseException:
                for name in written:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=folder_fd)
                raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        name = f": {error.filename}" if isinstance(error, OSError) and error.filename else ""
        raise UserError(f"cannot write into {folder}{name}: {reason}", "choose another folder with --folder") from None


def _refuse_to_overwrite(folder: str, contents: dict[str, str], folder_fd: int) -> None:
    for name in contents:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(name, dir_fd=folder_fd)
            hint = "nothing was written; choose another folder with --folder, or move that file"
            raise UserError(f"{os.path.join(folder, name)} already exists", hint)


def _create(folder_fd: int, name: str, text: str, written: list[str]) -> None:
    """Create a file below the folder, executable if it is a script, and add its name to those written."""
    folder, _, file = name.rpartition("/")
    if folder:
        with suppress(FileExistsError):
            os.mkdir(folder, dir_fd=folder_fd)
    with _open_folder(folder or ".", folder_fd) as inner_fd:
        mode = 0o777 if text.startswith("#!") else 0o666  # the umask removes some of these bits
        file_fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=inner_fd)
        written.append(name)
        with open(file_fd, "w", encoding="utf-8") as stream:
            stream.write(text)


@contextmanager
def _open_folder(folder: str, parent_fd: int | None = None) -> Iterator[int]:
    """A descriptor of the folder. Below another folder, a link is not followed: anybody may have made the project."""
    folder_fd = os.open(folder, _FOLDER_FLAGS | (0 if parent_fd is None else os.O_NOFOLLOW), dir_fd=parent_fd)
    try:
        yield folder_fd
    finally:
        os.close(folder_fd)


def _report(starter: Starter, folder: str, options: argparse.Namespace) -> str:
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
