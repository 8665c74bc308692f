"""What finds the secrets that `[secrets]` hides: made once for each policy, because its values are read then.

A policy that is loaded anew has settings of its own, so its values are read anew.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ..session.hidden_secrets import masks_without_session

if TYPE_CHECKING:
    from ..config.gateway import GatewayConfig
    from ..model.secret_settings import SecretSettings
    from ..protocol.secret_masks import SecretMasks
    from ..secrets.finder import Finder

_MOST: Final = 64  # settings whose finder is kept: those of all servers under the present policy and the one before

_known: dict[int, tuple[SecretSettings, Finder, SecretMasks]] = {}  # by the `id` of the settings, which are kept


def finder_of(settings: SecretSettings) -> Finder:
    """What finds the secrets of these settings. Raises UserError for a value that cannot be had."""
    return _made(settings)[1]


def masks_for_log(settings: SecretSettings) -> SecretMasks:
    """What masks texts that belong to no session: their placeholders stand for nothing. Raises UserError."""
    return _made(settings)[2]


def _made(settings: SecretSettings) -> tuple[SecretSettings, Finder, SecretMasks]:
    if (known := _known.get(id(settings))) is not None:
        return known
    from ..config.secret_values import finder

    made = finder(settings, os.environ)
    while len(_known) >= _MOST:
        del _known[next(iter(_known))]
    _known[id(settings)] = settings, made, masks_without_session(made)
    return _known[id(settings)]


def check_secrets(config: GatewayConfig) -> None:
    """Raise UserError for a value that cannot be had: it could not be hidden."""
    for server in config.servers.values():
        if server.loaded.settings.secrets is not None:
            finder_of(server.loaded.settings.secrets)
