"""A call to a server that the agent's own hook has reported before: what only the agent's side knows of it."""

from __future__ import annotations

from msgspec import Raw, Struct

from .flow import Chain
from .hooks import AgentState


class ReportedCall(Struct, frozen=True, omit_defaults=True):
    """One call that the guard has let pass, or about which its agent asks the person first."""

    session: str
    cwd: str
    project_dir: str
    tool_use_id: str
    state: AgentState
    record: str = ""
    """The id of its record in the guard's audit; empty: it has none."""
    asked: bool = False
    """The guard has had the person asked, who has allowed it: otherwise the agent would not have sent the call."""
    exceeds: tuple[str, ...] = ()
    chains: tuple[Chain, ...] = ()
    """The limits and data flows about which the person was asked, too, as in `Proceed`."""
    decided: bool = False
    """It was judged under the same configuration, and everything that its hooks got is as it is for the server's own
    run: they need not run again."""
    hooks: Raw = Raw(b"[]")
    """`decided`: the hooks that have run, as they stand in a record."""
    hook_ms: float = 0.0
    approval: tuple[str, str, str, str] = ("", "", "", "")
    """`decided`: who has had a person asked, what the person has answered, who that was, and the person's reason."""
    edited: bool = False
    """`decided`: the person has changed the arguments."""
    before: bytes = b""
    """`decided`: its arguments before hooks rewrote them; empty: they did not."""
