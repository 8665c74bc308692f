"""The keys of a file with cases, and what each one means. An unknown key is an error, as in hookproxy.toml.

Annotations are evaluated when the classes are made, as in `config.models`, whose `Table` they are.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from ..config.models import Table

MAX_TIMES: Final = 10_000  # a call takes a millisecond, and nobody waits longer than ten seconds for one case

_Text = Annotated[str, Meta(min_length=1)]


class Call(Table, frozen=True):
    """A call of a tool."""

    tool: _Text
    """The server's own name of the tool."""
    arguments: dict[str, object] = field(default_factory=dict)
    """The arguments as the agent sends them."""


class Request(Table, frozen=True):
    """A request of any method."""

    method: _Text
    """The method, such as "resources/read"; one of the server, such as "sampling/createMessage", comes from there."""
    params: dict[str, object] = field(default_factory=dict)
    """The params of the request."""


class Expect(Table, frozen=True):
    """What must come out. Only what is named is compared."""

    decision: Literal["allow", "deny", "ask"] | None = None
    """"allow": it runs; "deny": it is refused; "ask": a person is asked, whatever the answer."""
    reason: object = None
    """Why it is refused or asked about: the whole text, or { contains = "…", lacks = "…" }."""
    arguments: dict[str, object] | None = None
    """The arguments with which it runs."""
    reads: object = None
    """What the agent finally reads, as one text: the whole text, or { contains = "…", lacks = "…" }."""
    failure: bool = False
    """true: a hook fails. Without it, a hook that fails fails the case, whatever is decided."""


class Step(Table, frozen=True):
    """A call or request, and what is expected of it."""

    call: Call | None = None
    """The call."""
    request: Request | None = None
    """The request, in place of a call."""
    answer: Literal["allow", "deny"] | None = None
    """What a person answers who is asked. Without it nobody answers."""
    result: object = None
    """What the server responds: a text, or the result as a table. Without it, hooks after the call do not run."""
    time: datetime | None = None
    """When it happens, with a time zone: for limits, and hooks that look at the time in their input. Default: now."""
    times: Annotated[int, Meta(ge=1, le=MAX_TIMES)] = 1
    """How often it happens, one time after another; each time what is expected must come out."""
    expect: Expect | None = None
    """What must come out."""


class Case(Step, frozen=True):
    """A case: a session of its own, with one call or with several steps."""

    name: str = ""
    """What it shows, in a few words."""
    server: _Text | None = None
    """The server's name as hooks see it, or of gateway.toml. Default: "server", or the only one of gateway.toml."""
    agent: str = ""
    """The agent's name and version, as the audit would record them: nothing decides by them."""
    user: _Text | None = None
    """With gateway.toml: who calls."""
    groups: list[_Text] | None = None
    """With gateway.toml: the groups of the user. Default: none."""
    files: dict[str, str] = field(default_factory=dict)
    """Files that the case needs, by path: it then runs in a new folder with them, ${FOLDER} in arguments."""
    setup: _Text | None = None
    """A line of shell that is run before, in a new folder: `git init -q -b main`."""
    steps: list[Step] = field(default_factory=list)
    """Several calls in the same session, one after another."""


class CaseFile(Table, frozen=True):
    """A file with cases."""

    config: _Text | None = None
    """The hookproxy.toml or gateway.toml that is tested. Default: the one beside the file, or in the folder above."""
    case: list[Case] = field(default_factory=list)
    """The cases."""
