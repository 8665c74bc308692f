"""How a server that we have started is ended once its input has ended: SIGTERM after a while, and then SIGKILL."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Final

EXIT_SECONDS: Final = 1.0
"""How long a server may take to exit after its input has ended, or after a signal that was passed on."""

TERM_SECONDS: Final = 0.5
"""How long it may take to exit after SIGTERM. With EXIT_SECONDS it stays below the two seconds after which agents kill.
"""


async def end_server(exits_within: Callable[[float], Awaitable[bool]], send: Callable[[int], object]) -> None:
    """Send SIGTERM, and then SIGKILL, unless it exits before. On cancel nothing more is sent.

    `exits_within` waits for its exit for so many seconds, and says whether it has exited; `send` sends it a signal.
    """
    for seconds, number in ((EXIT_SECONDS, signal.SIGTERM), (TERM_SECONDS, signal.SIGKILL)):
        if await exits_within(seconds):
            return
        send(number)
