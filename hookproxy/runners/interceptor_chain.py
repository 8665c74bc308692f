"""Runs interceptors on one message as SEP-2624 says, wherever they are: in which order, and what follows from each.

How it works: `protocol.interceptors.plan` says what runs. Mutations run one after another, validations all at once, on
the same payload; the first step that blocks ends it, and no mutation counts then. An interceptor that fails blocks,
unless its descriptor has `failOpen` (law 3). One in the mode `audit` runs as all do, and decides nothing: what it would
have done is a note.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
from msgspec import Struct

from ..protocol.interceptors import Descriptor, Outcome, Phase, plan
from .runner import HookFailed

Invoke = Callable[[int, bytes], Awaitable[Outcome]]
"""Has the interceptor at this place judge a payload. Raises HookFailed, TimeoutError."""


class ChainResult(Struct):
    """What became of one message."""

    payload: bytes
    """As it may pass; as it came, if it is blocked."""
    blocked: str = ""
    """Why it must not pass, in a sentence without a full stop; empty: it may."""
    place: int = -1
    """The interceptor that blocks it."""
    failed: bool = False
    """It blocks because it failed."""
    notes: tuple[tuple[int, str], ...] = ()
    """For people: what interceptors say that do not block, each with its place."""


async def run_chain(  # noqa: PLR0913  # the message, and who judges it
    descriptors: Sequence[Descriptor],
    event: str,
    phase: Phase,
    payload: bytes,
    invoke: Invoke,
    start_sink: Callable[[int, bytes], None],
    *,
    from_server: bool = False,
) -> ChainResult:
    """Run the interceptors for this message. On cancel nothing of it runs on."""
    steps = plan(descriptors, event, phase)
    chain = _Chain(descriptors, invoke, payload)
    parts = [chain.mutate(steps.mutations), chain.validate(steps.validations)]
    for part in parts if steps.mutates_first is not from_server else reversed(parts):
        if chain.result.blocked:
            part.close()
        else:
            await part
    if chain.result.blocked:
        chain.result.payload = payload
    for place in steps.sinks:
        start_sink(place, chain.result.payload)
    return chain.result


class _Chain:
    def __init__(self, descriptors: Sequence[Descriptor], invoke: Invoke, payload: bytes) -> None:
        self._descriptors = descriptors
        self._invoke = invoke
        self.result = ChainResult(payload)

    async def mutate(self, places: Sequence[int]) -> None:
        for place in places:
            outcome = await self._outcome(place, self.result.payload)
            if self.result.blocked:
                return
            if outcome is None or outcome.payload is None:
                continue
            if self._descriptors[place].mode == "audit":
                self._note(place, "would have changed it")
            else:
                self.result.payload = outcome.payload

    async def validate(self, places: Sequence[int]) -> None:
        outcomes: dict[int, Outcome | None] = {}

        async def run(place: int) -> None:
            outcomes[place] = await self._outcome(place, self.result.payload)

        if len(places) == 1:  # true of most messages
            await run(places[0])
        elif places:
            async with anyio.create_task_group() as tasks:
                for place in places:
                    tasks.start_soon(run, place)
        for place in places:
            if (outcome := outcomes[place]) is not None:
                self._judge(place, outcome)

    def _judge(self, place: int, outcome: Outcome) -> None:
        text = "; ".join(outcome.messages)
        if outcome.valid:
            return
        if not outcome.blocks:
            self._note(place, f"warns: {text}" if text else "warns")
        elif self._descriptors[place].mode == "audit":
            self._note(place, f"would have refused it: {text}" if text else "would have refused it")
        else:
            self._block(place, text or "it is not valid")

    async def _outcome(self, place: int, payload: bytes) -> Outcome | None:
        """What the interceptor says; None: it failed, and what follows is in the result."""
        try:
            return await self._invoke(place, payload)
        except (HookFailed, TimeoutError) as failure:
            why = str(failure) or "did not answer in time"
            descriptor = self._descriptors[place]
            if descriptor.mode == "audit" or descriptor.fail_open:
                self._note(place, f"{why}, which blocks nothing")
            else:
                self._block(place, why, failed=True)
            return None

    def _block(self, place: int, why: str, *, failed: bool = False) -> None:
        if not self.result.blocked or (self.result.failed and not failed):  # a reason says more than a failure
            self.result.blocked, self.result.place, self.result.failed = why, place, failed

    def _note(self, place: int, text: str) -> None:
        self.result.notes = (*self.result.notes, (place, f"the interceptor {self._descriptors[place].name} {text}"))
