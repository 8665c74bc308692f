"""What is measured on whom, and the rounds in which it happens."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent import LONG_RESULT, Fault, Peer, Placement, Session, Spawner, move_to, time_limit
from contestants import (
    AUDITS,
    BRIDGES,
    CONFIGURED,
    DIRECT,
    DRAINED,
    FASTMCP,
    FLOOR,
    FLOWING,
    HIDING,
    PLAIN,
    POST_HOOK,
    PRE_HOOK,
    REMOTE,
    REMOTE_FLOOR,
    REMOTE_HOOKS,
    REMOTE_TLS,
    SPAWN,
    UNMATCHED,
    WITH_SCRIPTS,
    WITHOUT_SPAWN,
    Contestant,
    bin_true,
    drain,
    start,
)

RELAYS = (DIRECT, FLOOR, PLAIN, UNMATCHED, FASTMCP)
NOTIFICATIONS = 20_000
HALF = LONG_RESULT // 2
"""The least that a hook after `many` reads, in bytes: the text of the result, without its structuredContent."""
PAUSE = 0.15
"""Seconds: an interpreter has started in less."""
SLOW_EVERY = 4
"""A slow contestant takes part in one block of four: it is far off, and would take most of the time."""

Take = Callable[[Any], list[float]]
"""One measurement on a started peer: nanoseconds, messages per second, or MB."""
Block = tuple[int, int]
"""Round and block: figures of the same block were taken within the same second, and are compared."""


@dataclass(frozen=True)
class Measure:
    """One figure: how it is taken on each contestant, and in how many blocks per round."""

    name: str
    blocks: int
    takes: dict[str, Take]
    warm_up: bool = True
    """Take it once without counting."""


@dataclass
class Samples:
    """Everything measured: (measure, placement) → contestant → block → figures; and what went wrong."""

    figures: dict[tuple[str, str], dict[str, dict[Block, list[float]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    faults: list[str] = field(default_factory=list)
    """Of our own contestants."""
    remarks: list[str] = field(default_factory=list)
    """On foreign ones."""

    def blame(self, contestant: Contestant, where: str, fault: object) -> None:
        """Note that a contestant was wrong, once for each place."""
        notes = self.remarks if contestant.foreign else self.faults
        note = f"{contestant.name}: {where}: {fault}"
        if note not in notes:
            notes.append(note)


def same(names: Iterable[str], take: Take, slow: Take) -> dict[str, Take]:
    """The same measurement for each contestant; fastmcp's is a smaller one."""
    return {name: slow if name == FASTMCP else take for name in names}


def recorded(folder: Path, name: str, calls: int, take: Take) -> Take:
    """The same measurement, where the audit of this contestant must have a line for the end of each of its calls."""
    file = folder / AUDITS[name]

    def ends() -> int:
        return file.read_bytes().count(b'"result":"ok"') if file.exists() else 0

    def checked(peer: Session) -> list[float]:
        before = ends()
        figures = take(peer)
        if (lines := ends() - before) != calls:
            raise Fault(f"{calls} calls, but {lines} lines in the audit")
        return figures

    return checked


def unhooked() -> list[Measure]:
    """Measures of calls that no hook concerns. Memory comes first: it wants fresh processes."""
    with_memory = (*RELAYS[1:], CONFIGURED) if os.path.exists("/proc/self/status") else ()
    return [
        Measure("memory", 1, {name: lambda peer: peer.memory() for name in with_memory}, warm_up=False),
        Measure(
            "latency",
            12,
            same(RELAYS, lambda peer: peer.latencies(200, 10), lambda peer: peer.latencies(30, 5)),
        ),
        Measure("flight", 8, same(RELAYS, lambda peer: peer.rate(4000, 64), lambda peer: peer.rate(192, 64))),
        Measure(
            "notifications",
            8,
            same(
                RELAYS,
                lambda peer: peer.notification_rate(NOTIFICATIONS),
                lambda peer: peer.notification_rate(1000),
            ),
        ),
        Measure(
            "burst",
            4,
            {name: lambda peer: peer.notification_rate(NOTIFICATIONS, burst=True) for name in RELAYS[:-1]},
        ),
        Measure("result", 8, {name: lambda peer: peer.long_result(b"big") for name in RELAYS}),
    ]


def hooked_result(peer: Session, drained: Path) -> list[float]:
    """As long_result, where a hook must have read the result; it leaves in a file how many bytes it got."""
    drained.write_text("0")
    figures = peer.long_result(b"many")
    if (read := int(drained.read_text())) < HALF:
        raise Fault(f"its hook read {read} bytes")
    return figures


def hook_alone(peer: Spawner, folder: Path) -> list[float]:
    """The same hook with a document as long as the last that it got."""
    drained = folder / DRAINED
    return peer.times(drain(folder), 1, int(drained.read_text()) if drained.exists() else HALF)


def spaced(peer: Session, count: int) -> list[float]:
    """Calls with a pause before each, as an agent makes that thinks: what is to be ready is ready then."""
    figures = []
    for _ in range(count):
        time.sleep(PAUSE)
        figures += peer.latencies(1)
    return figures


def hooked(folder: Path) -> list[Measure]:
    """Measures of calls with a hook at work, whose files are in the folder."""
    true = [bin_true()]
    return [
        Measure(
            "hook",
            10,
            {
                SPAWN: lambda peer: peer.times(true, 25),
                UNMATCHED: lambda peer: peer.latencies(25, 5),
                PRE_HOOK: lambda peer: peer.latencies(25),
            },
        ),
        Measure(
            "hooks",
            8,
            {
                SPAWN: lambda peer: [120e9 / sum(peer.times(true, 120))],
                PRE_HOOK: lambda peer: peer.rate(120, 8),
            },
        ),
        Measure(
            "hooked-result",
            4,
            {
                SPAWN: lambda peer: hook_alone(peer, folder),
                FLOOR: lambda peer: peer.long_result(b"many"),
                UNMATCHED: lambda peer: peer.long_result(b"many"),
                POST_HOOK: lambda peer: hooked_result(peer, folder / DRAINED),
            },
        ),
        Measure(
            "rules",
            8,
            {
                UNMATCHED: lambda peer: peer.latencies(100, 5),
                **{name: recorded(folder, name, 105, lambda peer: peer.latencies(100, 5)) for name in AUDITS},
            },
        ),
        Measure(
            "rules-result",
            4,
            {
                UNMATCHED: lambda peer: peer.long_result(b"big"),
                **{name: recorded(folder, name, 1, lambda peer: peer.long_result(b"big")) for name in AUDITS},
            },
        ),
        Measure("secrets", 12, {name: lambda peer: peer.latencies(100, 5) for name in (UNMATCHED, HIDING)}),
        Measure(
            "secrets-text", 12, {name: lambda peer: peer.text_latencies(20, 100_000) for name in (UNMATCHED, HIDING)}
        ),
        Measure("secrets-result", 4, {name: lambda peer: peer.long_result(b"big") for name in (UNMATCHED, HIDING)}),
        Measure("flow", 12, {name: lambda peer: peer.latencies(100, 5) for name in (UNMATCHED, FLOWING)}),
        Measure("runners", 8, {name: lambda peer: peer.latencies(100, 5) for name in (UNMATCHED, *WITHOUT_SPAWN)}),
        Measure("scripts", 4, {name: lambda peer: spaced(peer, 4) for name in (UNMATCHED, *WITH_SCRIPTS)}),
    ]


def remote() -> list[Measure]:
    """Measures of servers at an address. Peers that take a millisecond for a call make fewer of them.

    fastmcp, the last one, fails at an event of 10 MB.
    """
    ours, names = (REMOTE_FLOOR, REMOTE, REMOTE_HOOKS), BRIDGES
    with_memory = ours[1:] if os.path.exists("/proc/self/status") else ()

    def each(take: Take, slow: Take) -> dict[str, Take]:
        return {name: take if name in ours else slow for name in names}

    return [
        Measure("remote-memory", 1, {name: lambda peer: peer.memory() for name in with_memory}, warm_up=False),
        Measure("remote", 8, each(lambda peer: peer.latencies(100, 10), lambda peer: peer.latencies(30, 5))),
        Measure("remote-flight", 8, each(lambda peer: peer.rate(2000, 64), lambda peer: peer.rate(192, 64))),
        Measure("remote-result", 4, {name: lambda peer: peer.long_result(b"big") for name in names[:-1]}),
    ]


class Bench:
    """Runs measures in rounds and collects the samples."""

    def __init__(self, contestants: dict[str, Contestant], folder: Path, only: set[str], quick: bool) -> None:
        self.contestants = contestants
        """Those that can be started."""
        self.folder = folder
        self.only = only
        """Names of measures; empty for all."""
        self.quick = quick
        self.samples = Samples()

    def chosen(self, measures: list[Measure]) -> list[Measure]:
        """The measures that were asked for."""
        return [
            measure
            for measure in measures
            if not self.only or measure.name.partition("-")[0] in self.only or measure.name in self.only
        ]

    def start_all(self, measures: list[Measure], placement: Placement) -> dict[str, Peer]:
        """Start everyone whom a measure needs, in shuffled order."""
        names = list({name for measure in measures for name in measure.takes if name in self.contestants})
        random.shuffle(names)
        peers = {}
        for name in names:
            try:
                peers[name] = start(self.contestants[name], placement, self.folder)
            except Fault as fault:
                self.samples.blame(self.contestants[name], "start", fault)
        return peers

    def suite(self, measures: list[Measure], placement: Placement, number: int) -> None:
        """One round: start the contestants, take each block from all in shuffled order, stop them."""
        measures = self.chosen(measures)
        peers = self.start_all(measures, placement)
        for measure in measures:
            if measure.warm_up:
                self.block(measure, peers, placement, None)
            for block in range(max(1, measure.blocks // 2) if self.quick else measure.blocks):
                self.block(measure, peers, placement, (number, block))
        for peer in peers.values():
            peer.stop()

    def block(self, measure: Measure, peers: dict[str, Peer], placement: Placement, block: Block | None) -> None:
        """Take one figure from each contestant; block None is not counted. Who is wrong leaves the round."""
        names = [name for name in measure.takes if name in peers]
        for name in random.sample(names, len(names)):
            if block and block[1] % SLOW_EVERY and self.contestants[name].slow:
                continue
            try:
                with time_limit():
                    figures = measure.takes[name](peers[name])
            except Fault as fault:
                self.samples.blame(self.contestants[name], measure.name, fault)
                peers.pop(name).stop()
                continue
            if block:
                self.samples.figures[measure.name, placement.name][name][block] = figures

    def starts(self, placement: Placement, number: int) -> None:
        """One round of starts, with a server that boots in 300 ms and at once."""
        for boot_ms in (300, 0):
            figures = self.samples.figures[f"start-{boot_ms}", placement.name]
            names = [name for name in (*RELAYS, CONFIGURED) if name in self.contestants]
            for name in random.sample(names, len(names)):
                try:
                    session = start(self.contestants[name], placement, self.folder, boot_ms)
                except Fault as fault:
                    self.samples.blame(self.contestants[name], "start", fault)
                    continue
                assert isinstance(session, Session)
                figures[name][number, 0] = [session.ready]
                session.stop()

    def remote_starts(self, placement: Placement, number: int) -> None:
        """One round of starts in front of a server at an address."""
        names = [name for name in (*BRIDGES, REMOTE_TLS) if name in self.contestants]
        for name in random.sample(names, len(names)):
            measure, shown = ("remote-start-https", REMOTE_HOOKS) if name == REMOTE_TLS else ("remote-start", name)
            try:
                session = start(self.contestants[name], placement, self.folder)
            except Fault as fault:
                self.samples.blame(self.contestants[name], "start", fault)
                continue
            assert isinstance(session, Session)
            self.samples.figures[measure, placement.name][shown][number, 0] = [session.ready]
            session.stop()

    def run(self, placements: list[Placement], rounds: int) -> Samples:
        """All rounds."""
        for number in range(rounds):
            for placement in placements:
                print(f"round {number + 1} of {rounds}, {placement.name}", file=sys.stderr, flush=True)
                move_to(placement.agent)
                self.suite(unhooked(), placement, number)
                self.suite(hooked(self.folder), placement, number)
                self.suite(remote(), placement, number)
            if not self.only or "start" in self.only:
                self.starts(placements[-1], number)
            if not self.only or "remote" in self.only:
                self.remote_starts(placements[-1], number)
        return self.samples
