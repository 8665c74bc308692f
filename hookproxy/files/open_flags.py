"""How files are opened whose name somebody else might have taken."""

from __future__ import annotations

import os
from typing import Final

NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a file is opened that must not exist yet, under any kind of name."""

READ_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""How a file is read: no link is followed, a pipe is not waited for, and a terminal does not become our own."""
