"""The guard as a service of the person's own: a socket of systemd's user manager, or an agent of launchd.

systemd listens at the guard's socket, and starts the guard when somebody connects: with the manager's environment, and
not with that of whichever agent asks first. launchd keeps it running. Everything that is written is in the record, so
that `uninstall` removes it. Where there is neither, clients start the guard.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

from ..files.create import remove_empty
from ..guard import client, controls, entries
from ..model.errors import UserError
from ..processes import short_command
from ..wrapping import undo, written
from . import guard_entries, wrap
from .common import create, show

_NAME: Final = "hookproxy-guard"
_LABEL: Final = "hookproxy.guard"
_SECONDS: Final = 30.0  # for a service manager to answer: it does at once, if there is one


def install(texts: Mapping[str, str], socket: str) -> None:
    """Write the files of `texts_of` and start the service. Raises UserError."""
    present = [path for path in texts if os.path.lexists(path)]
    if not present:
        folders = create(texts, "hookproxy guard uninstall --all removes what hookproxy has written")
        folders += [path for path in _made_by_manager() if not os.path.isdir(path)]
        wrap.remember(lambda record: record.with_created(texts, folders), "rm", *texts)
        show("".join(f"{path}: written\n" for path in texts))
    _end_guard(socket)
    for command in _starting(next(iter(texts))):
        _run(command)


def uninstall(record: written.Written) -> list[str]:
    """End the service and remove its files, if this record has them. Returns their paths. Raises UserError."""
    ours = [path for path in record.created if os.path.basename(path).startswith((_NAME, _LABEL))]
    if not ours:
        return []
    for command in _ending(ours[0]):
        _run(command, must=False)  # it may have been ended already, or there is no manager any more
    for path in ours:
        restored = undo.restore(path, record)
        if restored is not None:
            show(f"{undo.undo(restored)}\n")
    if not _is_mac():
        _run(["systemctl", "--user", "daemon-reload"], must=False)
    remove_empty([folder for folder in _made_by_manager() if folder in record.folders])
    return ours


def texts_of(socket: str) -> Mapping[str, str]:
    """The files of the service, by their paths. Raises UserError if there is no service manager of this person."""
    program, home = guard_entries.program_path(), guard_entries.home()
    places = entries.places(os.environ)
    if _is_mac():
        words = [program, "guard", "--foreground", "--socket", socket]
        return {f"{home}/Library/LaunchAgents/{_LABEL}.plist": _property_list(words, places)}
    if not (shutil.which("systemctl") and _run(["systemctl", "--user", "show-environment"], must=False)):
        problem = "there is no service manager of this account: systemctl --user does not work"
        raise UserError(problem, "leave out --service: agents start the guard when it is needed")
    folder = _systemd_folder()
    environment = "".join(f"Environment={_quoted(place)}\n" for place in places)
    about = "[Unit]\nDescription=The guard of agents' own tools (hookproxy)\n"
    return {
        f"{folder}/{_NAME}.socket": f"{about}[Socket]\nListenStream={_specifiers(socket)}\nSocketMode=0600\n"
        "DirectoryMode=0700\nRemoveOnStop=yes\n[Install]\nWantedBy=sockets.target\n",
        f"{folder}/{_NAME}.service": f"{about}[Service]\n{environment}"
        f"ExecStart={_quoted(program)} guard --socket {_quoted(socket)}\n",
    }


def _is_mac() -> bool:
    return sys.platform == "darwin"


def _systemd_folder() -> str:
    config = os.environ.get("XDG_CONFIG_HOME", "")
    return os.path.join(config if os.path.isabs(config) else f"{guard_entries.home()}/.config", "systemd", "user")


def _made_by_manager() -> Sequence[str]:
    """The folder that systemd makes when it enables the socket."""
    return [] if _is_mac() else [os.path.join(_systemd_folder(), "sockets.target.wants")]


def _starting(first: str) -> Sequence[Sequence[str]]:
    if _is_mac():
        return [["launchctl", "bootstrap", f"gui/{os.getuid()}", first]]
    return [["systemctl", "--user", "daemon-reload"], ["systemctl", "--user", "enable", "--now", f"{_NAME}.socket"]]


def _ending(first: str) -> Sequence[Sequence[str]]:
    if _is_mac():
        return [["launchctl", "bootout", f"gui/{os.getuid()}", first]]
    units = [f"{_NAME}.socket", f"{_NAME}.service"]
    return [["systemctl", "--user", "disable", "--now", *units]]


def _run(command: Sequence[str], *, must: bool = True) -> bool:
    """Whether the command has succeeded. Raises UserError if it `must`."""
    status = short_command.exit_status(command, "/", os.environ, _SECONDS)
    if status != 0 and must:
        problem = f"{' '.join(command)} has failed: its exit status is {status}"
        raise UserError(problem, "leave out --service: agents start the guard when it is needed")
    return status == 0


def _end_guard(socket: str) -> None:
    """End a guard that an agent has started: it would be in the way of the service. Raises UserError."""
    if controls.ask(socket, "stop") is None:
        return
    until = time.monotonic() + _SECONDS
    while (guard := client.connected(socket, until)) is not None and time.monotonic() < until:
        guard.close()
        time.sleep(0.02)  # noqa: TID251  # there is no event loop here


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """A word of a command line or a variable in a unit file."""
    text = _specifiers(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{text}"'


def _property_list(words: Sequence[str], places: Sequence[str]) -> str:
    array = "".join(f"<string>{escape(word)}</string>" for word in words)
    pairs = (place.partition("=") for place in places)
    variables = "".join(f"<key>{name}</key><string>{escape(value)}</string>" for name, _, value in pairs)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict>\n'
        f"<key>Label</key><string>{_LABEL}</string>\n<key>ProgramArguments</key><array>{array}</array>\n"
        f"<key>EnvironmentVariables</key><dict>{variables}</dict>\n"
        "<key>RunAtLoad</key><true/>\n<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n"
        "</dict></plist>\n"
    )
