"""Gives up requests to a remote server that bring nothing for too long, and closes streams that are at their end."""

from __future__ import annotations

import asyncio
from typing import Final

from ...network.connection import Connection
from .exchange import Exchange, Kind
from .messages import SUBSCRIBE
from .pool import Pool
from .transfers import Transfer, Transfers

_STREAM_LINGER: Final = 5.0  # seconds that a stream may stay open after its response: servers close it at once
_MESSAGE_SECONDS: Final = 30.0  # until a notification must be acknowledged: the ones after it wait, in their order
_ENDPOINT_SECONDS: Final = 30.0  # until a stream of HTTP+SSE must name the address for messages: all others wait for it
_LONGEST_WATCH: Final = 15.0  # seconds between two looks at silent exchanges: the error of a dead one may be so late


class Silence:
    """The deadlines of one channel: one timer for all. `seconds` is as `silence_seconds` of Remote."""

    def __init__(self, seconds: float, transfers: Transfers, pool: Pool) -> None:
        self._seconds = seconds
        self._transfers = transfers
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Look at what is open, from now on until nothing is."""
        if self._timer is None:
            wait = min(self._seconds / 4, _LONGEST_WATCH) if self._seconds else _LONGEST_WATCH
            self._timer = self._loop.call_later(min(wait, _STREAM_LINGER), self._look)

    def close(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        now, client = self._loop.time(), self._transfers.client
        for exchange, transfer in list(self._transfers.open.items()):
            may_be_silent = exchange.kind is Kind.LISTEN or exchange.method == SUBSCRIBE
            if transfer.connection is None or may_be_silent:
                continue
            if exchange.kind is Kind.ENDPOINT and client.old.endpoint:
                self._look_at_old_stream(transfer.connection, now)
            else:
                self._look_at(transfer, transfer.connection, now)
        self._pool.close_old()
        if self._transfers.open or self._pool.has_idle:
            self.watch()

    def _look_at(self, transfer: Transfer, connection: Connection, now: float) -> None:
        exchange = transfer.exchange
        if exchange.reader is not None and exchange.kind is Kind.REQUEST and not exchange.ids:
            transfer.linger_until = transfer.linger_until or now + _STREAM_LINGER
            if now >= transfer.linger_until:
                connection.close()
                transfer.on_complete()
        elif connection in self._transfers.stalled:
            connection.last_byte = now
        elif why := self._why_given_up(exchange, now - connection.last_byte, now - (exchange.sent_at or now)):
            connection.close()
            transfer.on_lost(why)

    def _look_at_old_stream(self, stream: Connection, now: float) -> None:
        """Give up requests whose responses would come in the stream of HTTP+SSE. The stream stays open for others."""
        if stream in self._transfers.stalled:
            stream.last_byte = now
        client = self._transfers.client
        for exchange in client.old.awaited():
            silent = now - max(stream.last_byte, exchange.sent_at)
            if exchange not in self._transfers.open and (why := self._why_given_up(exchange, silent, 0.0)):
                client.lost(exchange, f"The connection to {self._transfers.origin} has failed: {why}")

    def _why_given_up(self, exchange: Exchange, silent: float, taken: float) -> str:
        """Why an exchange is given up, after `taken` seconds, of which the last `silent` ones brought no byte.

        Empty: it is not. What others wait for has a time that bytes do not prolong, so that a server which sends one
        now and then holds up nothing.
        """
        if self._pool.is_paused:  # what has come is not read
            return ""
        if exchange.kind is Kind.MESSAGE and taken > _MESSAGE_SECONDS:
            return f"it was not acknowledged within {_MESSAGE_SECONDS:g} seconds"
        if exchange.kind is Kind.ENDPOINT and taken > _ENDPOINT_SECONDS:
            return f"its stream has named no address for messages within {_ENDPOINT_SECONDS:g} seconds"
        if self._seconds and silent > self._seconds:
            return f"no byte of its response has come for {self._seconds:g} seconds (silence_seconds)"
        return ""
