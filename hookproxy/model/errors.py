"""What the user may see when something cannot be done: one line that names what and where, and a hint (law 3)."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would delay the server's start by 10 ms
if TYPE_CHECKING:
    from typing import Final

EXIT_FINDINGS: Final = 1  # exit status: it ran, and found something
EXIT_USER_ERROR: Final = 2  # exit status: it could not be done, and the reason is the user's to mend
EXIT_DEFECT: Final = 3  # exit status: a defect of hookproxy
EXIT_NOT_EXECUTABLE: Final = 126  # exit status of shells for a command that is there but cannot be executed
EXIT_NOT_FOUND: Final = 127  # exit status of shells for a command that is not there
RESOURCE_HINT: Final = "ulimit -a shows how much there may be"  # the hint where there is scarcity


class UserError(Exception):
    """Something the user can mend. `cli` prints it as `error: …` and `hint: …` and exits with `status`.

    The hint is what to do next, and works as it stands; there always is one.
    """

    def __init__(self, message: str, hint: str, status: int = EXIT_USER_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        return f"error: {self.message}\nhint: {self.hint}"


class ConfigError(UserError):
    """A configuration or hook file that cannot be used; the message starts with the file, and the line or key."""

    def __init__(self, where: str, message: str, hint: str) -> None:
        super().__init__(f"{where}: {message}", hint)


def printable(text: str) -> str:
    """The text on one line, with an escape for each sign that a terminal would obey or not show."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def file_hint(path: str, why: OSError) -> str:
    """The hint about a file that cannot be read or written: how to see what is wrong with it."""
    from errno import EDQUOT, ENOENT, ENOSPC
    from shlex import quote

    if why.errno in (ENOSPC, EDQUOT):
        return f"make room: df {quote(path)} shows how much there is"
    if why.errno == ENOENT:
        return "name a file that is there; a relative path starts from the working directory"
    return f"ls -ld {quote(path)} shows what it is, and whose"


def resource_shortage(error: BaseException) -> str:
    """Of what the system gives us too little (descriptors, processes, memory), as it says itself; empty: of nothing."""
    from errno import EAGAIN, EMFILE, ENFILE, ENOMEM

    if isinstance(error, OSError) and error.errno in (EAGAIN, EMFILE, ENFILE, ENOMEM):
        return str(error.strerror)
    return ""


def describe_error(error: BaseException) -> str:
    """Why a call, or all of us, has ended by nobody's decision."""
    scarce = resource_shortage(error)
    return f"the system gives hookproxy too little: {scarce}" if scarce else f"a defect of hookproxy: {error!r}"
