"""What is said of a chain, to models and to people."""

from __future__ import annotations

from collections.abc import Sequence
from time import localtime, strftime

from ..model.counts import counted
from ..model.flow import Chain, Reading
from .places import shown


def sentence(chain: Chain) -> str:
    """What the call would do, as a clause without a full stop."""
    *earlier, last = chain.readings
    read = _read(last, chain.labels)
    if earlier:
        read = ", ".join(_read(reading, chain.labels) for reading in earlier) + f" and {read}"
    if further := len(chain.numbers) - len(chain.readings):
        read += f", and {counted(further, 'earlier result')} with such a label,"
    others = any(reading.server != chain.server for reading in chain.readings)
    at = f" at {shown(chain.place)}" if chain.place else ""
    return f"this call would send {read} to {_named(chain.tool, chain.server if others else '')}{at}"


def reasons(chains: Sequence[Chain]) -> str:
    """The sentences about all chains of one call."""
    return "; ".join(dict.fromkeys(map(sentence, chains)))


def _read(reading: Reading, labels: Sequence[str]) -> str:
    those = [label for label in reading.labels if label in labels]
    place = f" from `{shown(reading.place)}`" if reading.place else ""
    time = strftime("%H:%M", localtime(reading.at))
    return f"what {_named(reading.tool, '')} read{place} (label{'s' * (len(those) != 1)} {', '.join(those)}, {time})"


def _named(tool: str, server: str) -> str:
    return f"`{shown(tool)}`" + (f" of {shown(server)}" if server else "")
