"""`hookproxy uninstall`: undoes every wrap, setup and convert on this machine, and prints what is left to remove.

It reads the record of what these verbs wrote, and the configurations of all known agents. Every change is shown before
a person is asked, and what others changed in the same files since then stays. Exit status: 0 all of it is undone, there
was nothing to undo, or the person said no; 1 some files stay as they are, and the others were undone; 2 it failed, and
nothing was changed.
"""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from ..config.load import load
from ..dialects.agent_side import agent_side, names
from ..files.create import remove_empty
from ..model.counts import counted
from ..model.errors import EXIT_FINDINGS, UserError, uninstall_command
from ..trust.sources import FileContext, state_folder
from ..wrapping import files, known_agents, known_hook_files, undo, written
from ..wrapping.diff import unified
from ..wrapping.syntax_tree import Edit
from ..wrapping.undo import Plan
from ..wrapping.written import Written
from . import guard_entries, wrap
from .common import ask, has_terminal, show, show_line, working_directory
from .layout import shortened
from .options import Parser
from .own_file import CONFIG, user_config_folder
from .signals import uninterrupted

_NOTHING: Final = "nothing is wrapped, set up or converted\n"


def main(arguments: Sequence[str]) -> int:
    """Show what is to be undone, ask, do it, and say what is left. Returns the exit status."""
    options = build_parser().parse_args(list(arguments))
    home = os.path.expanduser("~")
    state = state_folder(os.environ, home)
    record = written.read(state) if state else written.Written()
    cwd = working_directory()
    plan = undo.plan(record, known_agents.config_files(os.environ, home, cwd))
    plan = replace(plan, errors=(*plan.errors, *_by_hand(record, home, cwd)))
    has_work = bool(plan.unwrapped or plan.restored)
    if has_work and not (options.yes or options.dry_run or has_terminal()):
        raise UserError(
            "there is no terminal to ask on; nothing was changed",
            "hookproxy uninstall --yes asks nothing; --dry-run only shows what would change",
        )
    with shortened(verbose=options.verbose, end=0):
        _show_plan(plan)
    if not has_work and plan.errors:
        raise UserError("nothing was changed", "each file's error is above")
    if options.dry_run or (has_work and not _agrees(options, plan)):
        show("nothing was changed\n" if has_work else _NOTHING)
        return 0
    if not has_work:
        show(_NOTHING)
    from . import guard_service

    service = guard_service.uninstall(record)
    plan = replace(plan, restored=tuple(file for file in plan.restored if file.snapshot.path not in service))
    status = _carry_out(replace(plan, gone=(*plan.gone, *service)), state, record)
    _end_guard(home)
    show(f"{'restart the agents; ' if has_work else ''}what is left of hookproxy, to remove it:\n")
    _show_rest(state)
    return status


def _by_hand(record: Written, home: str, cwd: str) -> Iterator[UserError]:
    """The hook files that start hookproxy and that it cannot restore.

    They are not wholly ours, because converted hooks were merged by hand, or the record does not know the guard's
    entries in them.
    """
    for path in known_hook_files.starting_hookproxy(os.environ, home, cwd):
        if path not in record.created:
            why = "it has hooks that start hookproxy hook, and hookproxy did not write it as a whole"
            yield UserError(f"{path} stays: {why}", "remove these hooks from it by hand")
    yield from guard_entries.unrecorded(record, [side for name in names() if (side := agent_side(name)) is not None])


def _agrees(options: Namespace, plan: Plan) -> bool:
    """Whether the person wants it. Raises KeyboardInterrupt."""
    try:
        return options.yes or ask(_question(plan))
    except KeyboardInterrupt:
        show("\nnothing was changed\n")
        raise


def build_parser() -> Parser:
    """The parser of this verb's command line."""
    parser = Parser(
        "uninstall",
        "Undo every wrap, setup and convert on this machine, and print what is left to remove: hookproxy itself, its "
        "configuration, what it remembers. A person is asked before anything is changed.",
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_common("--verbose")
    return parser


def _show_plan(plan: Plan) -> None:
    for file in plan.unwrapped:
        wrap.show_change(file, lambda _file: [])
    for restored in plan.restored:
        path, text = restored.snapshot.path, restored.snapshot.text
        if restored.text is None:
            show_line(f"{path}: to be removed")
        elif restored.text != text:
            wrap.show_lines(unified(path, text, [Edit(0, len(text), restored.text)]))
    for error in plan.errors:
        wrap.report_error(error)


def _question(plan: Plan) -> str:
    changed = counted(len(plan.unwrapped) + sum(restored.text is not None for restored in plan.restored), "file")
    removed = sum(restored.text is None for restored in plan.restored)
    more = f", and remove {counted(removed, 'file')} that hookproxy wrote" if removed else ""
    return f"Restore {changed}{more}?"


def _carry_out(plan: Plan, state: str, record: Written) -> int:
    """Undo everything that can be undone. Returns the exit status."""
    undone = [*plan.gone]
    failed = bool(plan.errors)
    with uninterrupted():
        for file in plan.unwrapped:
            try:
                files.replace(file.snapshot, file.plan.text)
                undone.append(os.path.abspath(file.snapshot.path))
                names = ", ".join(entry.key_path for entry in file.plan.changed)
                wrap.report(f"{file.snapshot.path}: unwrapped: {names}{_remove_backup(file.snapshot.path)}")
            except UserError as error:
                failed = True
                wrap.report_error(error)
        for restored in plan.restored:
            path = restored.snapshot.path
            try:
                # a file that has servers and hooks is another one by now
                now = undo.restore(path, record) if path in undone else restored
                if now is not None:
                    wrap.report(undo.undo(now))
                undone.append(path)
                _remove_backup(path)
            except UserError as error:
                failed = True
                wrap.report_error(error)
        _forget(state, undone)
    if failed and len(undone) == len(plan.gone):
        raise UserError("nothing was changed", "each file's error is above")
    return EXIT_FINDINGS if failed else 0


def _end_guard(home: str) -> None:
    """End the guard that runs: no agent asks it any more."""
    from ..guard import controls, place

    folder = place.folder(os.environ, home)
    if not folder or not os.path.isdir(folder):
        return
    try:
        if (status := controls.ask(place.socket_of(folder), "stop")) is not None:
            wrap.report(f"the guard ends: process {status.pid}")
    except UserError as error:
        wrap.report_error(error)
    remove_empty([folder])


def _remove_backup(path: str) -> str:
    """Remove the backup that hookproxy made of a file, if the file has all that is in it; else say where it is."""
    if needless := undo.needless_backup(path):
        os.unlink(needless)
        return ""
    backup = os.path.realpath(path) + files.BACKUP
    return f"; backup: {backup}" if os.path.lexists(backup) else ""


def _forget(state: str, undone: Sequence[str]) -> None:
    """Take what is undone out of the record, with the folders that were made for it, as far as they are empty."""
    if not state or not os.path.isdir(state):
        return
    folders = written.read(state).folders
    remove_empty(folders)
    try:
        written.update(state, lambda record: record.without(undone))
    except UserError as error:
        wrap.report_error(error)
    remove_empty([*folders, state])


# --- what is left ---


def _show_rest(state: str) -> None:
    """Print the commands that remove the rest: no verb of a program can remove that program."""
    lines = [(f"hookproxy pack remove {name}", "an installed pack") for name in _packs()]
    lines += [(f"rm -r {shlex.quote(path)}", what) for path, what in _folders(state)]
    lines += [(f"rm {shlex.quote(path)}", "the audit log") for path in _audit_files(state)]
    for command, what in lines:
        show(f"  # {what}\n  {command}\n")  # no command is broken, so that it can be copied
    show(f"  {uninstall_command()}\n")


def _packs() -> list[str]:
    """The packs that are installed: nothing in their folders is writable, so `rm` would not remove them."""
    from ..config.pack_layer import store

    try:
        return store(FileContext(os.environ, working_directory())).names()
    except UserError:  # one cannot be read, or there is no home folder
        return []


def _folders(state: str) -> Iterator[tuple[str, str]]:
    config = user_config_folder()
    if os.path.isdir(config):
        yield config, f"your configuration, {CONFIG}"
    if state and os.path.isdir(state):
        yield state, "what it remembers: the audit log, trusted files, logins"


def _audit_files(state: str) -> list[str]:
    """The audit file of the person's own configuration, if it is elsewhere."""
    try:
        path = load(None, [], None, os.environ, working_directory()).settings.audit_file
    except UserError:  # it is about to be removed, whatever is wrong with it
        return []
    return [path] if path and os.path.exists(path) and not path.startswith(f"{state}/") else []
