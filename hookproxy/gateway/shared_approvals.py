"""Shows the approvals that wait at one gateway on the consoles of all gateways with the same store and seal keys.

Law 1: only an explicit answer approves a call. Approvals and answers are sealed: whoever can read or write the store
can neither read arguments nor answer, and an answer counts for its own approval only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import anyio

from ..live.messages import AnswerTaken, GivenAnswer, WaitingApproval
from ..policy.shared_state import StoreUnavailable
from .published_lists import PublishedLists
from .sealed_values import SealedValues

if TYPE_CHECKING:
    from ..protocol.request_state import SealKey
    from ..session.live_feed import LiveFeed
    from ..session.proxy import Report
    from .store import Store

_LOOK_SECONDS: Final = 1.0
"""How often it is looked while an approval waits or a console is open, and only then: people take seconds to answer."""

_CONFIRMED_SECONDS: Final = 4.0
"""Within which the gateway that has asked confirms an answer: it looks each second. Consoles wait for five."""

_CONFIRMATION_LOOK_SECONDS: Final = 0.1
_LIFE_MILLISECONDS: Final = 5000
"""How long approvals are shown after the gateway that has asked has published them last: it may have been killed."""

_KEPT_MILLISECONDS: Final = 3_600_000
"""How long an answer is kept: no approval waits longer."""

_LONGEST: Final = 256 * 1024
"""Bytes of the arguments of an approval that others show: longer ones would fill the store and its connections."""

_MOST_BYTES: Final = 4 * 1024 * 1024
"""Of the arguments of all approvals of one gateway that others show, so that no response of the store is too long."""


_AGAIN: Final = "Somebody has answered it already."
_UNCONFIRMED: Final = "The gateway where it waits has not confirmed the answer: its audit says what became of the call."


class SharedApprovals:
    """The approvals of all these gateways: ours are published, and those of others are shown."""

    def __init__(self, store: Store, feed: LiveFeed, keys: Callable[[], Sequence[SealKey]], report: Report) -> None:
        """`keys` returns the seal keys: the first one seals, all of them open. Without any, nothing is published."""
        self._store = store
        self._feed = feed
        self._sealed = SealedValues(keys)
        self._published = PublishedLists(
            store=store,
            sealed=self._sealed,
            own=feed.run.run,
            type_=list[WaitingApproval],
            kind="approvals",
            names="gateways",
            milliseconds=_LIFE_MILLISECONDS,
        )
        self._report = report
        self._has_published = False
        self._too_long: frozenset[str] = frozenset()
        feed.approvals.answer_elsewhere = self.answer

    async def share(self) -> None:
        """Publish and show again and again. Runs until it is cancelled."""
        while True:
            await self.look()
            await anyio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Publish and show what is new. While the store is away, each gateway's consoles show its own approvals."""
        if not self._sealed.keys():
            return
        own = self._feed.approvals.here()
        if not (own or self._has_published or self._feed.is_watched):
            return
        elsewhere: list[WaitingApproval] = []
        try:
            await self._publish(self._short(own))
            await self._take_answers([approval.id for approval in own])
            if self._feed.is_watched:
                elsewhere = [approval async for approvals in self._published.of_others() for approval in approvals]
        except StoreUnavailable:  # the store has reported it
            pass
        self._feed.approvals.show_elsewhere(elsewhere)

    async def answer(self, given: GivenAnswer) -> AnswerTaken:
        """Pass an answer on to the gateway that has asked, and wait until it confirms it. The first answer counts."""
        name = given.answer.approval
        answer = self._sealed.seal(given, "answer", name)
        try:
            if (
                await self._store.ask("SET", self._store.key("answer", name), answer, "NX", "PX", _KEPT_MILLISECONDS)
                is None
            ):
                return AnswerTaken(name, accepted=False, why=_AGAIN)
            with anyio.move_on_after(_CONFIRMED_SECONDS):
                while True:
                    sealed = await self._store.ask("GET", self._store.key("taken", name))
                    if (confirmation := self._sealed.open(sealed, AnswerTaken, "taken", name)) is not None:
                        return confirmation
                    await anyio.sleep(_CONFIRMATION_LOOK_SECONDS)
        except StoreUnavailable as problem:
            return AnswerTaken(name, accepted=False, why=f"It could not be passed on: {problem}.")
        return AnswerTaken(name, accepted=False, why=_UNCONFIRMED)

    async def _publish(self, own: Sequence[WaitingApproval]) -> None:
        if own:
            await self._published.publish(own)
        elif self._has_published:
            await self._published.withdraw()
        self._has_published = bool(own)

    def _short(self, own: Sequence[WaitingApproval]) -> list[WaitingApproval]:
        """The approvals that others can show; of others it is reported."""
        too_long: list[WaitingApproval] = []
        room = _MOST_BYTES
        for approval in own:
            size = len(bytes(approval.arguments))
            if size > min(_LONGEST, room):
                too_long.append(approval)
            else:
                room -= size
        for approval in too_long:
            if approval.id not in self._too_long:
                size = len(bytes(approval.arguments))
                what = f"a call of {approval.tool} that waits for approval has {size} bytes"
                self._report(f"{what}: only this gateway's consoles show it")
        self._too_long = frozenset(approval.id for approval in too_long)
        return [approval for approval in own if approval.id not in self._too_long]

    async def _take_answers(self, names: Sequence[str]) -> None:
        """Take the answers to our approvals that consoles of other gateways have given, and confirm them."""
        for name in names:
            sealed_answer = await self._store.ask("GET", self._store.key("answer", name))
            given = self._sealed.open(sealed_answer, GivenAnswer, "answer", name)
            if given is not None and given.answer.approval == name:
                confirmation = await self._feed.approvals.take(given)
                sealed = self._sealed.seal(confirmation, "taken", name)
                await self._store.ask("SET", self._store.key("taken", name), sealed, "PX", _KEPT_MILLISECONDS)
