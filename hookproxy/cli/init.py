"""`hookproxy init`: writes a small working configuration, or one of the policies, and shows what to do next.

The files are those of `configs/`, which tests run; a wheel contains them beside this package's modules. What is new is
merged into a hookproxy.toml that is there, and keeps all that it says; other files are not overwritten, and nothing is
written through a link. All is written or nothing. Exit status: 0 the files are there, 2 they are not.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..files.create import remove_empty
from ..files.open_flags import READ_FILE
from ..model.errors import UserError
from .common import create, show, working_directory
from .merged_config import config_option, create_below, planned, shown, write_change
from .options import Parser
from .own_file import CONFIG, DIRECTIVE, schema_directive, user_config_folder

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_FAILS_CLOSED: Final = (
    'on_failure = "deny"  # calls are refused when a hook fails, whatever its own system says of that'
)


@dataclass(frozen=True, slots=True)
class Starter:
    """A configuration that `init` can write."""

    name: str
    """On the command line."""

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
        "guard",
        ("hooks/guard.sh",),
        ("bash", "jq"),
        "refuses destructive commands and access to secret files",
        ("try", "execute", '{"command": "rm -rf build"}'),
    ),
    "audit": Starter("audit", "audit", (), (), "records every call, and refuses one that it cannot"),
    "rewrite": Starter(
        "rewrite",
        "rewrite",
        ("redact.py",),
        ("python3",),
        "removes keys and tokens from arguments",
        ("try", "post", '{"text": "my key is AKIAABCDEFGHIJKLMNOP"}'),
    ),
    "lint": Starter(
        "lint",
        "lint-after-write",
        ("hooks/lint.sh",),
        ("bash", "jq"),
        "shows the model the errors in a file that it wrote",
    ),
}
"""By their names on the command line; the first is the default. `policies` has the others."""

_ALLOW_LIST: Final = "allow-list"
_FLOW: Final = "flow"
_PROPOSED: Final = {_ALLOW_LIST: "these tools of a server only", _FLOW: "where their data may go"}
"""Not files to copy: `init_allow_list` and `init_flow` make them from a server's own tools."""

_CASES: Final = "tests.toml"
"""The cases of a policy, beside its hookproxy.toml in configs/."""


def main(arguments: Sequence[str]) -> int:
    """Write the files and show what to do next. Returns the exit status."""
    for name in _PROPOSED:
        if (words := _words_for(name, arguments)) is not None:
            return _propose(name, words)
    from .layout import fitted

    known = {**STARTERS, **policies()}
    options = build_parser().parse_args(list(arguments))
    if options.list:
        show(fitted(_list(known)))
        return 0
    folder = (
        user_config_folder() if options.user else os.path.normpath(os.path.join(working_directory(), options.folder))
    )
    if options.source is not None:
        from . import init_pack

        return init_pack.main(folder, options)
    if options.install:
        raise UserError("--install is for a pack", "name it: hookproxy init --from PACK --install")
    starter = known[options.starter or next(iter(STARTERS))]
    taken = take(starter, folder, options.fail_closed)
    show(fitted(_report(starter, taken, folder, options)))
    return 0


def _words_for(name: str, arguments: Sequence[str]) -> list[str] | None:
    """The other words of a command line that wants what is proposed under this name; None: it wants something else."""
    for at, word in enumerate(arguments):
        if word == "--":
            return None
        if word == name and (not at or arguments[at - 1] not in ("--folder", "--name")):
            return [*arguments[:at], *arguments[at + 1 :]]
    return None


def _propose(name: str, words: Sequence[str]) -> int:
    if name == _FLOW:
        from . import init_flow

        return init_flow.main(words)
    from . import init_allow_list

    return init_allow_list.main(words)


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "init",
        "Write a small working configuration, with its hook, or one of the policies; --list shows all. "
        "A hookproxy.toml that is there keeps what it says, and gets what it lacks. No other file is changed. "
        "`hookproxy init allow-list -- COMMAND` writes which tools of a server may be called, from its own list, and "
        "`hookproxy init flow -- COMMAND` which of them read and send data.",
    )
    parser.add_argument(
        "starter",
        nargs="?",
        choices=(*STARTERS, *policies(), *_PROPOSED),
        metavar="NAME",
        help="what to write (default: guard)",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FOLDER|ARCHIVE",
        help="show what the pack there contains and needs, and what would run to install it",
    )
    parser.add_argument(
        "--install", action="store_true", help="with --from: install the pack, and name it in hookproxy.toml"
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
    parser.add_common("--verbose")
    parser.add_argument("--list", action="store_true", help="show what can be written, and write nothing")
    return parser


def policies() -> Mapping[str, Starter]:
    """The policies that can be written, by their names."""
    folders = sorted(folder for folder in (starters() / "policies").glob("*") if (folder / CONFIG).is_file())
    return {folder.name: _policy(folder) for folder in folders}


def _policy(folder: Path) -> Starter:
    """A policy; the first sentence of the comment at the head of its hookproxy.toml says what it does."""
    comment = (folder / CONFIG).read_text("utf-8").split("\n\n", 2)[1]
    text = " ".join(line.removeprefix("#").strip() for line in comment.splitlines()).partition(": ")[2]
    others = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())
    files = (name for name in others if name not in (CONFIG, _CASES) and "__pycache__" not in name)
    description = re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]
    shows = ("test",) if (folder / _CASES).is_file() else ("check",)
    return Starter(folder.name, f"policies/{folder.name}", tuple(files), (), description, shows)


def starters() -> Path:
    """The folder with the files to copy: in an installed package, or in a checkout."""
    packaged = _PACKAGE / "configs"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "configs"


def write_starter(starter: Starter, folder: str) -> tuple[dict[str, str], list[str]]:
    """Write the files of a starter into the folder, the configuration last, or none of them.

    Returns their texts by their paths, and the folders that were made for them. Raises UserError.
    """
    paths = {os.path.join(folder, name): text for name, text in _contents(starter).items()}
    return paths, create(paths, "choose another folder with --folder, or move that file", folder)


@dataclass(frozen=True, slots=True)
class Taken:
    """What `take` has done, by the names of files in the folder."""

    written: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    """Files that were there, with the same content."""
    changed: tuple[str, ...] = ()
    """Files that were there with another content, of a policy that the configuration has already."""
    merged: tuple[str, ...] = ()
    """What the hookproxy.toml that was there has got."""


def take(starter: Starter, folder: str, fails_closed: bool = False) -> Taken:
    """Write the files of a starter into the folder, and merge its configuration into the one that is there.

    All of it or nothing. Raises UserError: for a file with another content, and for a configuration that contradicts.
    """
    contents = _contents(starter, fails_closed)
    present = [name for name in contents if name != CONFIG and _is_same(os.path.join(folder, name), contents[name])]
    new = [name for name in contents if name not in present]
    addition = contents[CONFIG].partition("\n")[2] if contents[CONFIG].startswith(DIRECTIVE) else contents[CONFIG]
    change = planned(folder, addition, starter.name)
    if change is None:
        create_below(folder, {name: contents[name] for name in new})
        return Taken(tuple(new), tuple(present))
    merged = change.merged
    new.remove(CONFIG)
    changed = [] if merged.added else [name for name in new if _is_file(os.path.join(folder, name))]
    new = [name for name in new if name not in changed]
    made = create_below(folder, {name: contents[name] for name in new})
    try:
        write_change(folder, change, "")
    except BaseException:
        for name in new:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
        remove_empty(made)
        raise
    return Taken(tuple(new), tuple(present), tuple(changed), merged.added)


def _contents(starter: Starter, fails_closed: bool = False) -> dict[str, str]:
    """The texts of the files by their names in the folder, the configuration last."""
    contents = {name: _content(starter, name) for name in starter.hooks}
    if (starters() / starter.source / _CASES).is_file():
        contents[f"tests/{starter.name}.toml"] = _content(starter, _CASES)
    contents[CONFIG] = _content(starter, CONFIG)
    if fails_closed:
        start, table, rest = contents[CONFIG].partition("\n[")
        contents[CONFIG] = f"{start}\n{_FAILS_CLOSED}\n{table}{rest}"
    return contents


def _is_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def _is_same(path: str, text: str) -> bool:
    """Whether the file is there with this text. A link is not: what it leads to is somebody else's."""
    try:
        fd = os.open(path, READ_FILE | os.O_NOFOLLOW)
        with open(fd, "rb") as file:
            return file.read(len(text.encode()) + 1) == text.encode()
    except (OSError, ValueError):  # to create it says what is wrong
        return False


def _content(starter: Starter, name: str) -> str:
    text = (starters() / starter.source / name).read_text("utf-8")
    if not text.startswith(DIRECTIVE):
        return text
    return schema_directive() + text.partition("\n")[2]


def _list(known: Mapping[str, Starter]) -> str:
    """The output of `--list`."""
    width = max(map(len, known))
    lines = [f"{name:<{width}}  {starter.description}" for name, starter in known.items()]
    lines += [f"{name:<{width}}  {what}: add -- COMMAND" for name, what in _PROPOSED.items()]
    return "\n".join((*lines, "", "hookproxy init NAME writes one; its list is in its script or hookproxy.toml")) + "\n"


def _report(starter: Starter, taken: Taken, folder: str, options: Namespace) -> str:
    """The output: what was written, which programs are missing, and the next commands."""
    config = shown(folder, options, CONFIG)
    lines = [f"wrote {shown(folder, options, name)}" for name in taken.written]
    lines += [f"as it is: {shown(folder, options, name)}" for name in taken.present]
    lines += [f"yours stays: {shown(folder, options, name)}" for name in taken.changed]
    if taken.merged:
        lines.append(f"added to {config}: {', '.join(taken.merged)}")
    elif CONFIG not in taken.written:
        lines.append(f"as it is: {config}")
    missing = [program for program in starter.requires if shutil.which(program) is None]
    if missing:
        lines.append(f"missing: {starter.hooks[0]} fails without {' and '.join(missing)}")
    source = config_option(config, options)
    lines += [
        "",
        f"next: hookproxy {shlex.join(starter.next_command)}{source}",
        f"then: hookproxy wrap FILE{source}",
        "FILE is your agent's configuration, or the agent's name; hookproxy wrap alone lists what is on this machine",
    ]
    return "\n".join(lines) + "\n"
