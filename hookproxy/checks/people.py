"""Names in gateway.toml that nobody has: a rule for them holds for nobody, and nothing else would say so."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..authorization.token_file import read_tokens
from ..dialects.shared.hook_file import suggestion
from ..model.errors import ConfigError
from ..model.principal import GROUP_SIGN
from ..transports.accounts import is_local_group

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig

_UNIX = "unix:"


def unknown_people(config: GatewayConfig) -> Iterator[str]:
    """A sentence for each name that no account and no token has, without a full stop.

    An issuer's users and groups are not known here. Where there is one, a name is reported only if it looks misspelled.
    """
    gateway = config.gateway
    has_accounts = gateway.listen is None or any(address.startswith(_UNIX) for address in gateway.listen)
    users, groups = _of_tokens(config)
    told = set[str]()
    for key, who in config.people:
        is_group = who.startswith(GROUP_SIGN)
        name = who.removeprefix(GROUP_SIGN)
        known = groups if is_group else users
        if who in told or name in known or (name.isdecimal() and has_accounts):
            continue
        if has_accounts and (is_local_group(name) if is_group else _is_account(name)):
            continue
        hint = _hint(name, users, groups, is_group=is_group, has_accounts=has_accounts)
        if gateway.oidc is not None and not hint:
            continue
        told.add(who)
        kind, of_token = ("group", "with a group") if is_group else ("account", "for a user")
        places = [f"there is no {kind} {name}"] * has_accounts
        places += [f"no token {of_token} {name}"] * (gateway.tokens is not None)
        effect = "the role is nobody's" if key.startswith("roles.") else "it holds for nobody"
        text = " and ".join(places) or f"nobody can have the name {name} here"
        made = f", or: {'groupadd' if is_group else 'useradd'} {name}" if has_accounts else ""
        yield f"{key}: {text}, so {effect} ({hint or f'correct the name{made}'})"


def _of_tokens(config: GatewayConfig) -> tuple[set[str], set[str]]:
    """The users and the groups of the token file."""
    if config.gateway.tokens is None:
        return set(), set()
    try:
        file = read_tokens(os.path.join(os.path.dirname(config.path), config.gateway.tokens))
    except ConfigError:  # said where it is needed
        return set(), set()
    valid = [record for record in file.records.values() if not record.revoked]
    return {record.user for record in valid}, {group for record in valid for group in record.groups}


def _hint(name: str, users: set[str], groups: set[str], *, is_group: bool, has_accounts: bool) -> str:
    """What may be meant instead; empty if nothing is known."""
    if is_group and (name in users or (has_accounts and _is_account(name))):
        return f"a user has this name: write {name!r} without @"
    if not is_group and (name in groups or (has_accounts and is_local_group(name))):
        return f"a group has this name: write {GROUP_SIGN + name!r}"
    small = name.lower()
    if has_accounts and small != name and (is_local_group(small) if is_group else _is_account(small)):
        return f"did you mean {small!r}?"
    return suggestion(name, groups if is_group else users)


def _is_account(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except (KeyError, ValueError):  # ValueError: it contains NUL
        return False
    return True
