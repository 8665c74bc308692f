"""A proposed table as TOML, with the reason of each entry in a comment. Pure.

Law: the names of files, programs and addresses are whatever a server makes of them. None ends its string or comment.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from ..model.errors import printable, toml_comment, toml_string
from .learned import Proposal

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_MOST_LEFT_OUT: Final = 20  # lines: who reads more looks at the trace
_MEBIBYTE: Final = 1024**2
_SECRET: Final = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def toml_of(proposal: Proposal, name: str, head: str) -> str:
    """The table for the server of this name. `head` says what it comes from."""
    return "".join(f"{line}\n" for line in _lines(proposal, name, head))


def options_of(proposal: Proposal) -> str:
    """The same as options of a sandbox that one agent's server gets, for a shell; empty if they are not one line."""
    named = [("read", proposal.read), ("write", proposal.write), ("env", proposal.env)]
    words = [
        "--sandbox",
        *(word for name, values in named for value in values for word in (f"--sandbox-{name}", value)),
    ]
    if not proposal.network:
        words += ["--sandbox-network", "none"]
    line = shlex.join(words)
    return line if line.isprintable() else ""


def _lines(proposal: Proposal, name: str, head: str) -> Iterator[str]:
    yield from toml_comment(head)
    yield from toml_comment(
        "Read it before you copy it: what the server was not asked to do is missing, and a hostile server gets "
        "proposed whatever it reached for. Nothing has been changed."
    )
    yield f"[servers.{name if _BARE_KEY.fullmatch(name) else toml_string(name)}.sandbox]"
    yield from _list("read", proposal.read)
    yield from _list("write", proposal.write)
    yield from toml_comment(proposal.network_why)
    yield f'network = "{"all" if proposal.network else "none"}"'
    yield from _list("env", {variable: _why_variable(variable, path) for variable, path in proposal.env.items()})
    yield from toml_comment(proposal.memory_why)
    yield f'memory = "{proposal.memory // _MEBIBYTE}MiB"'
    yield from toml_comment(proposal.processes_why)
    yield f"processes = {proposal.processes}"
    if proposal.left_out:
        yield ""
        yield "# Left out:"
        for path, why in list(proposal.left_out.items())[:_MOST_LEFT_OUT]:
            yield f"#   {printable(path)}  {printable(why)}"
        if (more := len(proposal.left_out) - _MOST_LEFT_OUT) > 0:
            yield f"#   and {more} more"


def _list(key: str, entries: Mapping[str, str]) -> Iterator[str]:
    if not entries:
        return
    yield f"{key} = ["
    for entry, why in entries.items():
        yield f"    {toml_string(entry)},  # {printable(why)}"
    yield "]"


def _why_variable(name: str, path: str) -> str:
    secret = "; a secret is safer in a file: credentials" if _SECRET.search(name) else ""
    return f"{path} names it; whether it is needed cannot be seen{secret}"
