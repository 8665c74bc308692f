"""Who a user would be at a gateway that is not asked: an account of this machine, and what the token file says.

What an issuer says of a user is known only to it: its groups must be named.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ..authorization.token_file import read_tokens
from ..model.errors import UserError
from ..model.principal import Principal
from ..processes import service
from ..transports.accounts import read_account

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig


class Identity(Struct, frozen=True):
    """A user with the groups that rules see, and how the gateway would know it."""

    principal: Principal
    known_by: str
    """In a few words, for people."""


def identities(config: GatewayConfig, user: str, groups: Sequence[str] | None) -> tuple[Identity, ...]:
    """Who this user may be, once for each list of groups. With `groups` it has these, whoever says so.

    Raises UserError for a user whose groups nobody here knows.
    """
    if groups is not None:
        return (Identity(Principal(f"user:{user}", user, tuple(sorted(set(groups)))), "as --groups says"),)
    found = [*_of_account(config, user), *_of_tokens(config, user)]
    if not found:
        where = " and the token file has none in force" if config.gateway.tokens else ""
        issuer = f"; what {config.gateway.oidc.issuer} says is not known here" if config.gateway.oidc else ""
        problem = f"the groups of {user} are not known: this machine has no such account{where}{issuer}"
        raise UserError(problem, f"name them: --user {user} --groups developers,oncall (- for none)")
    by_groups: dict[frozenset[str], Identity] = {}
    for identity in found:
        by_groups.setdefault(frozenset(identity.principal.groups), identity)
    return tuple(by_groups.values())


def _of_account(config: GatewayConfig, user: str) -> list[Identity]:
    """As on the Unix socket, where the kernel says who connects."""
    listen = config.gateway.listen
    if listen is not None and not any(address.startswith("unix:") for address in listen):
        return []
    try:
        account = service.account_named(user)
    except UserError:
        return []
    return [Identity(read_account(account.uid), "by its account on this machine")]


def _of_tokens(config: GatewayConfig, user: str) -> list[Identity]:
    """As over HTTP, with each token of the user that is in force."""
    if config.gateway.tokens is None:
        return []
    path, now = os.path.join(os.path.dirname(config.path), config.gateway.tokens), time.time()
    return [
        Identity(Principal(f"token:{user}", user, tuple(sorted(record.groups))), f"by the token {record.id}")
        for record in read_tokens(path).records.values()
        if record.user == user and not record.revoked and (record.expires is None or now < record.expires)
    ]
