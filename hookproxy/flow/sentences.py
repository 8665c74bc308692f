"""The sentences about a chain, for models and for people."""

from __future__ import annotations

from collections.abc import Sequence
from time import localtime, strftime

from ..model.counts import counted
from ..model.flow import Chain, Reading
from .places import shown


def sentence(chain: Chain) -> str:
    """What the call would do, as a clause without a full stop."""
    *earlier, last = dict.fromkeys(_read(reading, chain.labels) for reading in chain.readings)
    read = f"{', '.join(earlier)} and {last}" if earlier else last
    if further := len(chain.numbers) - len(chain.readings):
        read += f", and {counted(further, 'earlier result')} with such a label,"
    others = any(reading.server != chain.server for reading in chain.readings)
    at = f" at {shown(chain.place)}" if chain.place else ""
    return f"this call would send {read} to {_named(chain.tool, chain.server if others else '')}{at}"


def reasons(chains: Sequence[Chain]) -> str:
    """The sentences about all chains of one call."""
    return "; ".join(dict.fromkeys(map(sentence, chains)))


def drawn(chain: Chain, arrow: str = "└▶") -> list[str]:
    """The chain as lines of text: what was read, and below it where it goes."""
    lines = []
    if further := len(chain.numbers) - len(chain.readings):
        lines.append(f"{counted(further, 'earlier result')} with such a label")
    for reading in chain.readings:
        words = (reading.tool, f"of {reading.server}" if reading.server else "", reading.place)
        facts = (*_labels(reading, chain.labels), _time(reading), f"call {reading.call}" if reading.call else "")
        lines.append(f"{_joined(words)} ({', '.join(filter(None, facts))})")
    words = (chain.tool, f"of {chain.server}" if chain.server else "", chain.place)
    return [*lines, f"{arrow} {_joined(words)} ({chain.sink})"]


def _joined(words: Sequence[str]) -> str:
    return " ".join(shown(word) for word in words if word)


def _labels(reading: Reading, labels: Sequence[str]) -> list[str]:
    return [label for label in reading.labels if label in labels]


def _time(reading: Reading) -> str:
    return strftime("%H:%M", localtime(reading.at))


def _read(reading: Reading, labels: Sequence[str]) -> str:
    those = _labels(reading, labels)
    place = f" from `{shown(reading.place)}`" if reading.place else ""
    words = f"label{'s' * (len(those) != 1)} {', '.join(those)}"
    return f"what {_named(reading.tool, '')} read{place} ({words}, {_time(reading)})"


def _named(tool: str, server: str) -> str:
    return f"`{shown(tool)}`" + (f" of {shown(server)}" if server else "")
