"""The name under which Python hooks written for 0.1 import `hookproxy.hooks.api`."""

from __future__ import annotations

from .hooks.api import Answer, Occasion, Server, allow, ask, comment, deny, rewrite

__all__ = ["Answer", "Occasion", "Server", "allow", "ask", "comment", "deny", "rewrite"]
