"""`hookproxy init`: writes a small configuration that works, with its hook, and says what to do next.

The files are those of `configs/`, which tests run; a wheel has them beside this package's modules. Nothing that is
there already is overwritten, and nothing is written through a link. Exit status: 0 written, 2 could not.
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
from .common import here, parser, show
from .schema import SCHEMA

if TYPE_CHECKING:
    import argparse

USAGE: Final = "hookproxy init [guard|audit|rewrite|lint] [--folder FOLDER | --user]"

CONFIG: Final = "hookproxy.toml"
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_DIRECTIVE: Final = "#:schema "  # how a TOML file tells editors (taplo, tombi) which schema completes it
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Starter:
    """What one word after `init` writes."""

    source: str
    """Its folder in configs/."""
    hooks: tuple[str, ...]
    """Its files beside hookproxy.toml."""
    needs: tuple[str, ...]
    """Programs without which its hook fails."""
    about: str
    """What it does, for people."""
    trial: tuple[str, ...] = ("check",)
    """The verb and its arguments that show it at work; `--config` follows."""


STARTERS: Final = {
    "guard": Starter(
        "guard",
        ("hooks/guard.sh",),
        ("bash", "jq"),
        "refuses commands that destroy, and secret paths",
        ("try", "execute", '{"command": "rm -rf build"}'),
    ),
    "audit": Starter("audit", (), (), "records every call, and lets none pass that it cannot record"),
    "rewrite": Starter(
        "rewrite",
        ("redact.py",),
        ("python3",),
        "takes keys and tokens out of arguments",
        ("try", "post", '{"text": "my key is AKIAABCDEFGHIJKLMNOP"}'),
    ),
    "lint": Starter("lint-after-write", ("hooks/lint.sh",), ("bash", "jq"), "tells the model what it broke in a file"),
}
"""By their names on the command line; the first is what `init` alone means."""


def main(arguments: Sequence[str]) -> int:
    """Write what is asked for; gives the exit status."""
    chosen = options().parse_args(list(arguments))
    starter = STARTERS[chosen.what]
    folder = _users_folder() if chosen.user else os.path.normpath(os.path.join(here(), chosen.folder))
    texts = {name: _text(starter, name) for name in (*starter.hooks, CONFIG)}
    _write(folder, texts)
    show(_report(starter, folder, chosen))
    return 0


def options() -> argparse.ArgumentParser:
    """What its command line takes."""
    taken = parser(
        "init",
        USAGE,
        "Write a small configuration that works, with its hook; nothing is overwritten. "
        + " ".join(f"{name}: {starter.about}." for name, starter in STARTERS.items()),
    )
    taken.add_argument("what", nargs="?", choices=STARTERS, default=next(iter(STARTERS)), help="default: guard")
    where = taken.add_mutually_exclusive_group()
    where.add_argument("--folder", metavar="FOLDER", default=".", help="where to (default: the working directory)")
    where.add_argument(
        "--user", action="store_true", help="into your own configuration folder, of which no --config need speak"
    )
    return taken


def starters() -> Path:
    """The folder that the files come from: in an installed package, or in a checkout."""
    packaged = _PACKAGE / "configs"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "configs"


def _users_folder() -> str:
    """Where hookproxy.toml is read from although nobody names it."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # a relative one is to be ignored, says the XDG specification
        folder = os.path.expanduser("~/.config")
    return os.path.join(folder, "hookproxy")


def _text(starter: Starter, name: str) -> str:
    text = (starters() / starter.source / name).read_text("utf-8")
    if not text.startswith(_DIRECTIVE):
        return text
    return f"{_DIRECTIVE}{SCHEMA.as_uri()}\n{text.partition(chr(10))[2]}"


def _write(folder: str, texts: dict[str, str]) -> None:
    """Write all of the files, the configuration last, or none. Raises UserError."""
    try:
        os.makedirs(folder, exist_ok=True)
        with _opened(folder) as top:
            _refuse_to_overwrite(folder, texts, top)
            written: list[str] = []
            try:
                for name, text in texts.items():
                    _create(top, name, text, written)
            except BaseException:
                for name in written:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=top)
                raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        name = f": {error.filename}" if isinstance(error, OSError) and error.filename else ""
        raise UserError(f"cannot write into {folder}{name}: {reason}", "choose another with --folder") from None


def _refuse_to_overwrite(folder: str, texts: dict[str, str], top: int) -> None:
    for name in texts:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(name, dir_fd=top)
            hint = "nothing was written; choose another folder with --folder, or move that file away"
            raise UserError(f"{os.path.join(folder, name)} is there already", hint)


def _create(top: int, name: str, text: str, written: list[str]) -> None:
    """Make a new file below the folder, readable and, if it is a script, executable; notes that it has."""
    folder, _, file = name.rpartition("/")
    if folder:
        with suppress(FileExistsError):
            os.mkdir(folder, dir_fd=top)
    with _opened(folder or ".", top) as inner:
        mode = 0o777 if text.startswith("#!") else 0o666  # less what the umask takes
        new = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=inner)
        written.append(name)
        with open(new, "w", encoding="utf-8") as stream:
            stream.write(text)


@contextmanager
def _opened(folder: str, below: int | None = None) -> Iterator[int]:
    """A descriptor of the folder; one below another is not followed if it is a link: a project may be anybody's."""
    number = os.open(folder, _FOLDER | (0 if below is None else os.O_NOFOLLOW), dir_fd=below)
    try:
        yield number
    finally:
        os.close(number)


def _report(starter: Starter, folder: str, chosen: argparse.Namespace) -> str:
    """What was written, what is missing, and the next command."""
    shown = os.path.relpath(folder, here()) if not chosen.user else folder
    config = os.path.normpath(os.path.join(shown, CONFIG))
    lines = [f"wrote {os.path.normpath(os.path.join(shown, name))}" for name in (*starter.hooks, CONFIG)]
    missing = [program for program in starter.needs if shutil.which(program) is None]
    if missing:
        lines.append(f"missing: {starter.hooks[0]} needs {' and '.join(missing)}, and fails without")
    source = "" if chosen.user else f" --config {shlex.quote(config)}"
    lines += [
        "",
        f"next: hookproxy {shlex.join(starter.trial)}{source}",
        f"then: hookproxy wrap FILE{source}",
        "FILE is your agent's configuration: hookproxy wrap alone lists those that are here",
    ]
    return "\n".join(lines) + "\n"
