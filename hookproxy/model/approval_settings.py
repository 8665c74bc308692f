"""What `[approvals]` says: how approvals that wait are reported to people outside of the agent."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from .secret_settings import Source


class WebhookSettings(Struct, frozen=True):
    """The table `[approvals.webhook]`."""

    url: str
    """Where an approval is posted."""
    secret: Source
    """Where the secret of its signature is."""
    listen: str = "127.0.0.1:0"
    """Host and port of this machine at which answers come; port 0 is any free one."""
    public_url: str = ""
    """The address of that for whoever answers, without a slash at its end; empty: it is the same."""


class ApprovalSettings(Struct, frozen=True):
    """The table `[approvals]`."""

    desktop: bool = False
    """Show a notification of the desktop."""
    webhook: WebhookSettings | None = None


NOT_TOLD: Final = ApprovalSettings()
