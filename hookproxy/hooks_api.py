"""The former name of `hookproxy.hooks.api`: Python hooks that import it go on working."""

from __future__ import annotations

from .hooks.api import HookInput, HookOutput, Server, allow, ask, comment, deny, rewrite

Answer = HookOutput
Occasion = HookInput

__all__ = ["Answer", "HookInput", "HookOutput", "Occasion", "Server", "allow", "ask", "comment", "deny", "rewrite"]
