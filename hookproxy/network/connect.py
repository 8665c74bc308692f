"""Opens connections to the server: directly or through a proxy, with TLS that is verified."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import ssl
from collections.abc import Callable
from typing import Final

import httptools

from ..model.errors import UserError
from . import tcp
from .address import Address, Proxy
from .connection import Connection, Owner

_SECOND_ADDRESS_DELAY: Final = 0.25  # seconds until a host's second address is tried beside the first (RFC 8305)
_MAX_PROXY_HEAD: Final = 16 * 1024  # bytes of a proxy's answer to CONNECT
_ERROR_NUMBER: Final = re.compile(r"\[Errno ([0-9]+)\]")  # as OSError prints it
_OTHER_HOST: Final = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""What OpenSSL 1.1 to 3.0, and the later ones, say of a peer that answers in plain text."""

CA_HINT: Final = " (--ca FILE trusts one of your own)"
"""For the verbs that have this option."""

_USER_ERRORS: Final = (OSError, ValueError)


def tls_context(ca: str | None, cert: str | None, key: str | None) -> ssl.SSLContext:
    """Return the TLS settings. Servers are verified against the system's certificates, or else those in `ca`.

    `cert` is our own certificate, with its key in `key` or in the same file. Raises UserError.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except _USER_ERRORS as problem:
        raise UserError(f"--ca {ca}: {_reason(problem)}", "name a file with certificates in PEM form") from None
    context.set_alpn_protocols(["http/1.1"])
    if cert:
        try:
            context.load_cert_chain(cert, key, password=_no_password)
        except _USER_ERRORS as problem:
            hint = "name a certificate in PEM form, and its key without a passphrase"
            raise UserError(f"--cert {cert}: {_reason(problem)}", hint) from None
    return context


def _no_password() -> str:
    raise ValueError("its key has a passphrase")


def _reason(problem: Exception) -> str:
    if isinstance(problem, OSError) and not isinstance(problem, ssl.SSLError) and problem.strerror:
        return problem.strerror
    return "it cannot be used: " + (getattr(problem, "reason", None) or str(problem) or type(problem).__name__)


async def connect(
    address: Address,
    proxy: Proxy | None,
    tls: ssl.SSLContext | None,
    owner: Owner,
    seconds: float | None,
    *,
    ca_hint: str = "",
) -> Connection:
    """Open a connection within so many seconds; None: the caller limits the time.

    Raises OSError and ValueError; nothing is left open then. `ca_hint` is added to the error if the issuer of a
    certificate is not known.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            return await _connect(address, proxy, tls, lambda: Connection(owner, loop))
    except TimeoutError:
        if seconds is None:
            raise
        raise ConnectionError(f"there was no connection within {seconds:g} s") from None
    except ssl.SSLCertVerificationError as problem:
        hint = "" if problem.verify_code in _OTHER_HOST else ca_hint
        why = f"certificate verify failed: {problem.verify_message.rstrip('.')}{hint}"
        raise ConnectionError(why) from None
    except ssl.SSLError as problem:
        if problem.reason not in _NO_TLS:
            raise
        raise ConnectionError(f"it speaks no TLS ({problem.reason}), so its address may begin with http://") from None
    except OSError as problem:
        if "Connect call failed" not in str(problem):
            raise
        raise ConnectionError(_why_nothing_answers(problem, proxy)) from None


def _why_nothing_answers(problem: OSError, proxy: Proxy | None) -> str:
    """What the system says of one address, or of each address of a name; the event loop's own texts repeat those."""
    place = f"at the proxy {proxy.host}:{proxy.port}" if proxy is not None else "there"
    codes = dict.fromkeys(int(code) for code in _ERROR_NUMBER.findall(str(problem)))
    return ", ".join(
        f"nothing listens {place} (connection refused)" if code == errno.ECONNREFUSED else os.strerror(code)
        for code in codes
    )


async def _connect(
    address: Address, proxy: Proxy | None, tls: ssl.SSLContext | None, new_connection: Callable[[], Connection]
) -> Connection:
    loop = asyncio.get_running_loop()
    delay = _second_address_delay(address.host)
    if proxy is None and tls is None:
        return await tcp.connect(new_connection, address.host, address.port, delay)
    if proxy is None:
        _, connection = await loop.create_connection(
            new_connection, address.host, address.port, ssl=tls, happy_eyeballs_delay=delay
        )
        return connection
    transport, tunnel = await loop.create_connection(
        lambda: _Tunnel(loop), proxy.host, proxy.port, happy_eyeballs_delay=_second_address_delay(proxy.host)
    )
    try:
        await tunnel.open(address, proxy)
        connection = new_connection()
        if tls is not None:
            secure = await loop.start_tls(transport, connection, tls, server_hostname=address.host)
            assert secure is not None
            connection.connection_made(secure)
        else:
            transport.set_protocol(connection)
            connection.connection_made(transport)
            transport.resume_reading()
    except BaseException:
        transport.abort()
        raise
    return connection


def _second_address_delay(host: str) -> float | None:
    """None for an address: there is no second one, and asyncio's race of addresses leaks a socket when cancelled."""
    return None if ":" in host or host.replace(".", "").isdigit() else _SECOND_ADDRESS_DELAY


class _Tunnel(asyncio.Protocol):
    """A connection to a proxy until it is one to the server: `CONNECT host:port`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._done: asyncio.Future[int] = loop.create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._received = 0
        self._transport: asyncio.Transport

    async def open(self, address: Address, proxy: Proxy) -> None:
        """Ask the proxy for the connection. Raises ConnectionError."""
        host = f"[{address.host}]" if ":" in address.host else address.host
        lines = f"CONNECT {host}:{address.port} HTTP/1.1\r\nHost: {host}:{address.port}\r\n".encode()
        if proxy.authorization:
            lines += b"Proxy-Authorization: %b\r\n" % proxy.authorization
        self._transport.write(lines + b"\r\n")
        status = await self._done
        if not 200 <= status < 300:
            raise ConnectionError(f"the proxy {proxy.host}:{proxy.port} has refused the connection (HTTP {status})")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # the rest is the server's, and a server says nothing first
        except httptools.HttpParserError as problem:
            self._fail(f"the proxy's HTTP is invalid ({problem})")
        if self._received > _MAX_PROXY_HEAD:
            self._fail("the proxy's answer is too long")

    def on_headers_complete(self) -> None:
        if not self._done.done():
            self._transport.pause_reading()
            self._done.set_result(self._parser.get_status_code())

    def eof_received(self) -> None:
        self._fail("the proxy has closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the connection to the proxy broke{f': {exc}' if exc else ''}")

    def _fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionError(why))
