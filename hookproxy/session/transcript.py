"""What was done in a session, in a file as Claude Code has one, for hooks that read what `transcript_path` names.

How it works: each call is a line when its hooks begin, and its result another line where hooks see results. The file is
the person's alone, begins anew when it is long, and is removed with its run; that of a run that was killed is removed
by the next one. If it cannot be written, a line says so, and hooks run without it: their own system promises no more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from uuid import uuid4

import msgspec

from ..dialects.shared.input import iso_8601, utf8
from ..jsonrpc import raw_json
from ..live.registry import process_exists
from ..model.hooks import EventContext

_LONGEST: Final = 16 * 1024 * 1024  # bytes: hooks read all of it, each time
_LONGEST_RESULT: Final = 256 * 1024  # bytes: what a hook looks for in a longer one, a hook after the call reads itself
_SUFFIX: Final = ".jsonl"


class Transcript:
    """The file of one session."""

    def __init__(self, folder: str, report: Callable[[str], None]) -> None:
        """It is made in this folder with the first call. `report` gets sentences for people."""
        self._folder, self._report = folder, report
        self.path = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}")
        self._is_made = self._failed = False
        self._last = ""  # the id of the last line
        self._ids = f"{uuid4()}"[:24]  # of all lines, whose number follows
        self._number = self._size = 0

    def note_call(self, context: EventContext) -> None:
        """Hooks are about to judge a call."""
        name = utf8(f"mcp__{context.session.server}__{context.tool}")
        call = {"type": "tool_use", "id": utf8(context.tool_use_id), "name": name}
        self._write("assistant", context, {**call, "input": msgspec.Raw(context.arguments)})

    def note_result(self, context: EventContext) -> None:
        """A call has ended, with an outcome that hooks see."""
        if (outcome := context.outcome) is not None:
            content: object = msgspec.Raw(outcome.content) if outcome.has_result else utf8(outcome.error)
            if len(outcome.content) > _LONGEST_RESULT:
                content = f"[{len(outcome.content)} bytes are left out]"
            failed = bool(outcome.error)
            result = {"type": "tool_result", "tool_use_id": utf8(context.tool_use_id), "is_error": failed}
            self._write("user", context, {**result, "content": content})

    def close(self) -> None:
        """The session has ended: nobody reads the file any more."""
        if self._is_made:
            with suppress(OSError):
                os.unlink(self.path)

    def _write(self, role: str, context: EventContext, block: dict[str, object]) -> None:
        if self._failed:
            return
        self._number += 1
        line_id = f"{self._ids}{self._number:012x}"
        members = {
            "parentUuid": self._last or None,
            "isSidechain": context.agent_state is not None and bool(context.agent_state.agent_id),
            "type": role,
            "uuid": line_id,
            "timestamp": iso_8601(context.at),
            "sessionId": utf8(context.session.id),
            "cwd": utf8(context.session.cwd),
            "message": {"role": role, "content": [block]},
        }
        self._last = line_id
        try:
            self._append(raw_json.one_line(raw_json.encode(members)) + b"\n")
        except OSError as problem:
            self._failed = True
            self._report(f"hooks get no transcript: {self.path}: {problem.strerror}")

    def _append(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        if not self._is_made:
            with suppress(FileExistsError):
                os.makedirs(self._folder, 0o700)
            self._remove_left()
            flags |= os.O_CREAT | os.O_EXCL
        file = os.open(self.path, flags, 0o600)  # it is not kept open: descriptors may be few
        self._is_made = True
        try:
            if self._size + len(line) > _LONGEST:
                os.ftruncate(file, 0)
                self._size = 0
            self._size += os.write(file, line)
        finally:
            os.close(file)

    def _remove_left(self) -> None:
        """Remove the files of runs that were killed, by the process ids in their names."""
        for name in os.listdir(self._folder):
            pid = name.partition("-")[0]
            if name.endswith(_SUFFIX) and pid.isascii() and pid.isdecimal() and not process_exists(int(pid)):
                with suppress(OSError):
                    os.unlink(os.path.join(self._folder, name))
