"""The former name of `hookproxy.hooks.api`: Python hooks that import it go on working."""

from __future__ import annotations

from .hooks.api import Commands, HookInput, HookOutput, Server, allow, ask, commands, comment, deny, rewrite

Answer = HookOutput
Occasion = HookInput

__all__ = [
    "Answer",
    "Commands",
    "HookInput",
    "HookOutput",
    "Occasion",
    "Server",
    "allow",
    "ask",
    "commands",
    "comment",
    "deny",
    "rewrite",
]
