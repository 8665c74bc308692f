"""claw-code."""

from .hook_file import CLAW, CLAW_CURRENT

__all__ = ["CLAW", "CLAW_CURRENT"]
