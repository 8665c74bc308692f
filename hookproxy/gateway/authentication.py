"""Whose tokens a gateway accepts over HTTP: those of its file, and those of its issuer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..authorization.access_tokens import IssuerSettings
from ..authorization.authenticate import Authenticator
from ..authorization.bearer_tokens import BearerTokens
from ..model.errors import ConfigError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..config.gateway import GatewayConfig


def tokens_of_file(config: GatewayConfig, report: Callable[[str], None]) -> BearerTokens | None:
    """The tokens of the file; None: there is no file. Raises ConfigError."""
    file = config.gateway.tokens
    return BearerTokens(os.path.join(os.path.dirname(config.path), file), report) if file is not None else None


def authenticator(config: GatewayConfig, known: BearerTokens | None, report: Callable[[str], None]) -> Authenticator:
    """What says whose token it is: of the file, or of the issuer. Raises UserError."""
    folder = os.path.dirname(config.path)
    table = config.gateway.oidc
    if table is None:
        return Authenticator(known, None)
    from ..authorization.token_issuer import TokenIssuer

    settings = IssuerSettings(
        table.issuer,
        table.audience,
        table.user_claim,
        table.groups_claim,
        table.missing_groups,
        tuple(table.required_scopes),
        table.any_type,
        os.path.join(folder, table.ca) if table.ca else "",
    )
    try:
        return Authenticator(known, TokenIssuer(settings, report))
    except ConfigError:
        raise
    except UserError as problem:
        message = problem.message if problem.message.startswith("gateway.") else f"gateway.oidc: {problem.message}"
        raise ConfigError(config.path, message, problem.hint) from None
