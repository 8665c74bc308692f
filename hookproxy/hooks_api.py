"""The former name of `hookproxy.hooks.api`: Python hooks that import it go on working."""

from __future__ import annotations

from .hooks.api import Answer, HookInput, Server, allow, ask, comment, deny, rewrite

Occasion = HookInput

__all__ = ["Answer", "HookInput", "Occasion", "Server", "allow", "ask", "comment", "deny", "rewrite"]
