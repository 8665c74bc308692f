"""A notification of the desktop: which call waits, and where to answer. It has no arguments, and nothing to press.

Names come from servers and agents. They reach the program as arguments of its command line, never as a part of a script
or of markup; a line of AppleScript reads them from `argv`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from ..live.messages import WaitingApproval
from ..model.errors import printable
from ..model.hooks import Document, Ended, Event, HookSpec
from ..runners.registry import RUNNERS
from ..secrets.mask import Masking

_SECONDS: Final = 5.0  # for the program: it hands the text over and ends
_LONGEST_NAME: Final = 60  # characters of a tool or a server: a notification has two lines
_SCRIPT: Final = (
    *("-e", "on run argv"),
    *("-e", "display notification (item 2 of argv) with title (item 1 of argv)"),
    *("-e", "end run"),
)
_PLACES: Final = ("/usr/bin", "/usr/local/bin")
"""Where the program is looked for first: the agent's PATH may name folders of a project."""


async def notify(approval: WaitingApproval, answered_at: str, environ: Mapping[str, str]) -> str:
    """Show that the call waits; `answered_at`: where. Returns why it could not be shown, empty if it was.

    On cancel the program is ended.
    """
    is_mac = sys.platform == "darwin"
    words = command(texts(approval, answered_at), environ, is_mac=is_mac)
    if not words:
        return f"there is no {'osascript' if is_mac else 'notify-send'} on this machine"
    spec = HookSpec("hookproxy", "approvals", Event.NOTIFICATION, words[0], argv=words, timeout=_SECONDS)
    try:
        result = await RUNNERS[spec.type](spec, Document(b"", {}), environ)
    except OSError as problem:  # too few descriptors or processes
        return problem.strerror or str(problem)
    if result.ended is Ended.EXITED and not result.code:
        return ""
    name = os.path.basename(words[0])
    why = result.stderr.decode(errors="replace").strip().partition("\n")[0] or result.detail or result.ended.value
    return printable(f"{name}: {why}")


def texts(approval: WaitingApproval, answered_at: str) -> tuple[str, str]:
    """Title and text."""
    what = _name(approval.tool) + (f" of {_name(approval.server)}" if approval.server else "")
    return "hookproxy: a call waits for approval", f"{what} waits for your answer in {answered_at}."


def command(shown: Sequence[str], environ: Mapping[str, str], *, is_mac: bool) -> tuple[str, ...]:
    """The command line that shows a title and a text; empty: there is no program for it."""
    name = "osascript" if is_mac else "notify-send"
    folders = (*_PLACES, *filter(os.path.isabs, environ.get("PATH", "").split(":")))
    paths = (os.path.join(folder, name) for folder in folders)
    program = next((path for path in paths if os.access(path, os.X_OK)), "")
    if not program:
        return ()
    if is_mac:
        return (program, *_SCRIPT, *shown)
    return (program, "--app-name=hookproxy", "--", *map(_without_markup, shown))


def _name(text: str) -> str:
    """A name that cannot pass for something else, without what looks like a secret."""
    name = printable(Masking().text(text))
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _without_markup(text: str) -> str:
    """Some desktops read a small part of HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
