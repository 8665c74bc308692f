"""The policy that is in force now: the guard's configuration is read anew when one of its files has changed.

How it works: before each event the files that were read are looked at, which takes microseconds. If one has changed,
the configuration is read again, and a new `Judge` judges from then on; the former one ends with its last event, and
calls that wait for their end go over. While the configuration cannot be read nothing is judged: the client fails, or
refuses if it is to fail closed (law 3). The client's own file is looked at, too: if another version of hookproxy has
taken its place, this one judges nothing any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from time import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from .. import __version__
from ..config.load import Loaded
from ..dialects.agent_side import HookOutput
from ..model.errors import UserError
from ..session.live_feed import LiveSession
from ..trust.sources import StatSignature, stat_signature
from . import client
from .exchange import Request
from .judge import Judge
from .projects import ReadProject
from .status import NativeSessionStatus, Status

if TYPE_CHECKING:
    import anyio.abc

    from ..session.live_feed import LiveFeed

_SHOWN: Final = "guard"
"""The name in the feed of all sessions together."""

Seen = Mapping[str, StatSignature | None]
"""Paths, each with the signature of its file; None: there was none."""


class CannotJudge(Exception):
    """The configuration cannot be read. The text says why."""


class Superseded(Exception):
    """Another version of hookproxy is installed now."""


class Read(Struct, frozen=True):
    """A configuration, and the files whose change changes it."""

    loaded: Loaded
    seen: Seen
    """As they were before they were read: what changes while they are read is seen as a change."""
    digest: str = ""
    """As `config.digest` says."""
    read_project: ReadProject | None = None
    """As in `Projects`."""


class CurrentPolicy:
    """Judges each event by the configuration as it is then."""

    def __init__(
        self,
        read: Callable[[], Read],
        tasks: anyio.abc.TaskGroup,
        report: Callable[[str], None],
        feed: LiveFeed | None = None,
        folder: str = "",
    ) -> None:
        """Read it. `feed` is for consoles, `folder` as in AgentSessions. Raises UserError."""
        self._read, self._tasks, self._report, self._feed, self._folder = read, tasks, report, feed, folder
        found = read()
        self.loaded = found.loaded
        self._seen = found.seen
        self._digest = found.digest
        self._problem = ""
        self._program = signature_of(client.__file__)
        self._since = time()
        self._judge = self._judge_by(found)
        self._running: dict[Judge, int] = {self._judge: 0}
        if feed is not None:
            feed.show(_SHOWN, LiveSession(lambda: self._judge.described(), lambda: self._judge.judging()))

    async def judge(self, request: Request) -> HookOutput:
        """As `Judge.judge`. Raises CannotJudge and Superseded."""
        if signature_of(client.__file__) != self._program:
            raise Superseded
        if seen(self._seen) != self._seen:
            self._reread()
        if self._problem:
            raise CannotJudge(self._problem)
        judge = self._judge
        self._running[judge] += 1
        try:
            return await judge.judge(request)
        finally:
            self._running[judge] -= 1
            self._end_former(judge)

    def status(self) -> Status:
        """How it is now."""
        settings = self.loaded.settings
        return Status(
            pid=os.getpid(),
            since=self._since,
            version=__version__,
            config=self.loaded.path,
            problem=self._problem,
            fails_closed=settings.guard_fail_closed or self.loaded.managed is not None,
            sessions=tuple(NativeSessionStatus(agent, name) for agent, name in self.current.sessions.ids),
            open_calls=self._judge.open_calls(),
        )

    @property
    def current(self) -> Judge:
        """What judges now, or did until the configuration could not be read any more."""
        return self._judge

    async def aclose(self) -> None:
        """End all sessions, and write what waits to be recorded."""
        for judge in self._running:
            await judge.aclose()

    def _reread(self) -> None:
        self._seen = seen(self._seen)  # where it cannot be read, the next change is seen
        try:
            found = self._read()
            if found.digest and found.digest == self._digest:  # a file was touched, or is as it was before
                self._problem, self._seen = "", found.seen
                return
            judge = self._judge_by(found)
        except UserError as error:
            self._problem = str(error)
            self._report(self._problem)
            return
        self._problem, self.loaded, self._seen, self._digest = "", found.loaded, found.seen, found.digest
        former, self._judge = self._judge, judge
        self._judge.take_over(former)
        if self._feed is not None:
            self._feed.follow(_SHOWN)
        self._running[self._judge] = 0
        self._report("the configuration has changed, and is in force from now on")
        self._end_former(former)

    def _judge_by(self, found: Read) -> Judge:
        """Raises UserError."""
        judge = Judge(found.loaded, self._tasks, self._report, self._feed, found.digest, self._folder)
        judge.sessions.projects.read = found.read_project
        return judge

    def _end_former(self, judge: Judge) -> None:
        if judge is not self._judge and not self._running.get(judge, 1):
            del self._running[judge]
            self._tasks.start_soon(judge.aclose)


def seen(paths: Iterable[str]) -> Seen:
    """The files at these paths as they are now."""
    return {path: signature_of(path) for path in paths}


def signature_of(path: str) -> StatSignature | None:
    """The signature of a file; None: there is none."""
    try:
        return stat_signature(os.stat(path))
    except OSError:
        return None
