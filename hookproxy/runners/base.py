"""The shape of a runner: one way in which a hook runs; dialects never know which."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ..model import Document, HookResult, HookSpec

Runner = Callable[[HookSpec, Document, Mapping[str, str]], Awaitable[HookResult]]
"""Runs `spec` once: `document.stdin` on its standard input, `document.env` over the given environment.

Never raises for what a hook does: every end is a HookResult. On cancel the hook's whole process group is ended and
waited for before the cancellation goes on.
"""
