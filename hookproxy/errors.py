"""What the user may see when something cannot be done: one line that names what and where, and a hint (law 3)."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would delay the server's start by 10 ms
if TYPE_CHECKING:
    from typing import Final

FINDINGS: Final = 1  # exit status: it ran, and found something
CANNOT: Final = 2  # exit status: it could not be done, and the reason is the user's to mend
OUR_FAULT: Final = 3  # exit status: a defect of hookproxy
NOT_EXECUTABLE: Final = 126  # exit status of shells for a command that is there but cannot be executed
NOT_FOUND: Final = 127  # exit status of shells for a command that is not there


class UserError(Exception):
    """Something the user can mend. `cli` prints it as `error: …` and `hint: …` and exits with `status`."""

    def __init__(self, message: str, hint: str = "", status: int = CANNOT) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        return f"error: {self.message}" + (f"\nhint: {self.hint}" if self.hint else "")


class ConfigError(UserError):
    """A configuration or hook file that cannot be used; the message starts with the file, and the line or key."""

    def __init__(self, where: str, message: str, hint: str = "") -> None:
        super().__init__(f"{where}: {message}", hint)
