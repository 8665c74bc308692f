"""What `hookproxy learn` proposes: rules with their evidence, what they lose, and what could not be learned."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ..model.settings import Settings
from .observations import Seen

PermissionName = Literal["allow", "ask", "deny"]


class Learned(Struct):
    """A rule, with the calls that it decides."""

    permission: PermissionName
    rule: str
    opens: str = "no other text"
    """What it lets pass that was not seen."""
    seen: Seen = field(default_factory=Seen)
    different: int = 0
    """Different calls among them."""
    example: bytes = b""
    """The arguments of one of them."""


class Lost(Struct):
    """Calls that passed, and that what is learned refuses or asks about."""

    server: str
    tool: str
    calls: int = 0
    different: int = 0
    asks: bool = False
    why: str = ""
    examples: list[bytes] = field(default_factory=list)


class Proposal(Struct):
    """What is learned."""

    rules: list[Learned] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What could not be learned, in sentences."""
    passed: int = 0
    """Calls that had passed without a person."""
    passing: int = 0
    """Those of them that pass now."""
    denied: int = 0
    """Calls that had been denied. None of them passes."""

    def of(self, permission: PermissionName) -> list[Learned]:
        """The rules with this permission."""
        return [learned for learned in self.rules if learned.permission == permission]

    @property
    def settings(self) -> Settings:
        """The rules as they are configured."""
        deny, ask, allow = (
            tuple(learned.rule for learned in self.rules if learned.permission == name)
            for name in ("deny", "ask", "allow")
        )
        return Settings(default_permission="deny", deny=deny, ask=ask, allow=allow, unreadable="deny")
