"""The policy: what judges calls, as one frozen value. A reload assigns a new one; a call keeps its first one."""

from __future__ import annotations

from msgspec import Struct

from ..audit.log import Audit
from ..model.settings import Settings
from .evaluate import Hooks
from .skipped import SkippedHooks


class Policy(Struct, frozen=True, eq=False):
    """What judges and records calls."""

    hooks: Hooks
    settings: Settings
    audit: Audit
    skipped_hooks: SkippedHooks

    @classmethod
    def of(cls, hooks: Hooks, settings: Settings, audit: Audit) -> Policy:
        """The policy with these parts."""
        return cls(hooks, settings, audit, SkippedHooks(hooks.groups))

    @property
    def judges_calls(self) -> bool:
        """Some hook, rule, source or sink, or the audit, concerns messages, so lines must be read.

        Where the server gets a fixed list of roots, nothing that the agent says of its own is looked at.
        """
        settings = self.settings
        judges = self.hooks.groups or self.hooks.has_rules or self.hooks.flow is not None
        return bool(judges or settings.audit_all_calls or settings.roots.allowed)
