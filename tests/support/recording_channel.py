"""A channel whose peer is the test: it hands over what is written, and says what the test wants it to say."""

from __future__ import annotations

from collections.abc import Callable


class RecordingChannel:
    """A channel that remembers what was done with it; `says`, `ends`, `is_full` and `goes` are its peer's doings."""

    def __init__(self, on_write: Callable[[bytes], None] | None = None) -> None:
        """`on_write` gets what is written, instead of `written`."""
        self.written: list[bytes] = []
        self.write = on_write or self.written.append
        self.reading = False
        self.gone = False
        self.queued = 0
        self.is_substitute = False
        self.reads_lines = True

    def start(
        self,
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_full: Callable[[bool], None],
        on_gone: Callable[[], None],
    ) -> None:
        self.says, self.ends, self.is_full, self.goes = on_bytes, on_end, on_full, on_gone
        self.reading = True

    def pause(self) -> None:
        self.reading = False

    def resume(self) -> None:
        self.reading = True

    def drain(self) -> None: ...

    async def flushed(self) -> None: ...

    def end_output(self) -> None: ...

    def close(self) -> None: ...

    @property
    def got(self) -> bytes:
        return b"".join(self.written)
