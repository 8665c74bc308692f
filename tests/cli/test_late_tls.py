"""asyncio and anyio are imported without TLS, and TLS is all there as soon as it is used."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

pytestmark = pytest.mark.slow

_START: Final = """
import sys
from hookproxy.cli import late_tls
late_tls.postpone()
import anyio, asyncio, anyio.streams.tls
from anyio._backends import _asyncio
"""


def printed(script: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", _START + script], capture_output=True, text=True, timeout=30, check=True
    ).stdout


def test_an_event_loop_runs_without_tls() -> None:
    script = "anyio.run(anyio.sleep, 0); print('_ssl' in sys.modules, 'asyncio.sslproto' in dir(asyncio))"
    assert printed(script) == "False False\n"


def test_asyncio_and_anyio_have_the_real_modules_after_the_first_use() -> None:
    script = """
import ssl
held = asyncio.base_events.ssl
context = ssl.create_default_context()
import ssl as real
print(isinstance(context, held.SSLContext), held.SSLError is real.SSLError, type(real).__name__)
print(anyio.streams.tls.SSLContext is real.SSLContext)
print(asyncio.base_events.sslproto.SSLProtocol is sys.modules['asyncio.sslproto'].SSLProtocol)
"""
    assert printed(script) == "True True module\nTrue\nTrue\n"


def test_other_modules_never_get_a_stand_in_for_a_class() -> None:
    assert printed("from ssl import SSLContext; import ssl; print(SSLContext is ssl.SSLContext)") == "True\n"
    assert printed("from ssl import SSLContext; print(SSLContext.__module__)") == "ssl\n"


def test_what_ssl_does_not_have_is_still_an_error() -> None:
    assert printed("import ssl; print(hasattr(ssl, 'nothing'), hasattr(ssl, '__nothing__'))") == "False False\n"


def test_a_connection_over_tls_is_made() -> None:
    """A handshake with a peer that speaks no TLS fails as such, and not as a missing module."""
    script = """
import ssl
async def main():
    async def plain(reader, writer):
        writer.write(b"no TLS here\\n")
        await writer.drain()
        writer.close()
    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        await asyncio.open_connection("127.0.0.1", port, ssl=ssl.create_default_context())
    except ssl.SSLError as error:
        print(error.reason)
asyncio.run(main())
"""
    assert printed(script).strip() in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")


def test_nothing_is_postponed_after_asyncio() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys, asyncio, ssl; from hookproxy.cli import late_tls; late_tls.postpone();"
            "print(sys.modules['ssl'] is ssl)",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "True\n"
