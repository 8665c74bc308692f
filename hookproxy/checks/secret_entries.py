"""What is named and cannot be had or does not exist: a secret whose variable is not set, a misspelled rule.

A run does not start without a value, and a misspelled rule of `[[secrets.restore]]` would restore nothing in silence.
No sentence has a value in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from ..config.secret_values import read_value, read_values
from ..dialects.shared.hook_file import suggestion
from ..model.errors import UserError
from ..model.secret_settings import SecretSettings, Source
from ..model.settings import Settings
from ..policy.tool_tables import is_about
from ..secrets.rules import known_rules

_Read = tuple[Source, Callable[[Mapping[str, str]], object]]
"""Where a value is, and what reads it or raises UserError."""

_READ_AT_ONCE: Final = frozenset(["env", "file"])  # a keyring or a command may ask a person


def missing_values(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each value of `[secrets]` and for the webhook's secret, if it cannot be had or used here."""
    named = settings.secrets.values if settings.secrets is not None else {}
    reads: list[_Read] = [(source, partial(read_values, {name: source})) for name, source in named.items()]
    if (hook := settings.approvals.webhook) is not None:
        reads.append((hook.secret, partial(read_value, hook.secret, "approvals.webhook.secret")))
    for source, read in reads:
        if source.kind in _READ_AT_ONCE:
            try:
                read(environ)
            except UserError as error:
                yield f"{error.message}: where this is so, a run does not start"


def unknown_rules(secrets: SecretSettings | None) -> Iterator[str]:
    """A sentence for each pattern of `[[secrets.restore]] rules` that is about nothing."""
    if secrets is None:
        return
    known = [*(rule.id for rule in known_rules()), *secrets.detectors, *secrets.values]
    for pattern in dict.fromkeys(pattern for table in secrets.restore for pattern in table.rules):
        if not any(is_about(pattern, name) for name in known):
            near = suggestion(pattern, known)
            yield f"secrets.restore: no rule, detector or value is called {pattern!r}{f' ({near})' if near else ''}"
