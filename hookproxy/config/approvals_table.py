"""Reads the table `[approvals]`. It reads no secret: whoever asks people does, when a run begins."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlsplit

from ..model.approval_settings import ApprovalSettings, WebhookSettings
from ..model.errors import ConfigError, UserError
from ..network import address
from ..trust.sources import FileContext
from .models import ApprovalWebhook, ConfigFile
from .secret_source import source_of

_LARGEST_PORT: Final = 65535
_LISTEN_HINT: Final = 'write "127.0.0.1:0" for any free port; a tunnel or a reverse proxy to it has its own public_url'


def approval_settings(file: ConfigFile, path: str, file_context: FileContext, where: str) -> ApprovalSettings:
    """What the table of the file at `path` says; `where` is the table, for people. Raises ConfigError."""
    table, hook = file.approvals, file.approvals.webhook
    if hook is None:
        return ApprovalSettings(table.desktop)
    place = f"{where}.webhook"
    if file.on_ask_fallback == "allow":
        why = 'cannot be asked: on_ask_fallback = "allow" would approve each call that could not be reported to anybody'
        raise ConfigError(place, why, 'remove one of both, or write on_ask_fallback = "deny"')
    _check_url(hook.url, f"{place}.url")
    if hook.public_url is not None:
        _check_url(hook.public_url, f"{place}.public_url")
        parts = urlsplit(hook.public_url)
        if parts.query or parts.fragment:
            hint = "write scheme, host and path"
            raise ConfigError(f"{place}.public_url", "has more than a path, to which the id is added", hint)
    _check_listen(hook.listen, f"{place}.listen")
    return ApprovalSettings(table.desktop, _webhook(hook, path, file_context, place))


def _webhook(hook: ApprovalWebhook, path: str, file_context: FileContext, place: str) -> WebhookSettings:
    secret = source_of(hook.secret, f"{place}.secret", os.path.dirname(path), file_context)
    return WebhookSettings(hook.url, secret, hook.listen, (hook.public_url or "").rstrip("/"))


def _check_url(url: str, where: str) -> None:
    try:
        address.parse(url)
    except UserError as problem:  # its words are about an option
        why = problem.message.removeprefix(f"--url {url} ").removeprefix("--url ")
        raise ConfigError(where, why, "write https://HOST/PATH, or http://127.0.0.1:PORT/PATH") from None


def _check_listen(listen: str, where: str) -> None:
    host, _, port = listen.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) <= _LARGEST_PORT and host):
        raise ConfigError(where, f"{listen!r} is not HOST:PORT", _LISTEN_HINT)
    if not address.is_loopback(host.removeprefix("[").removesuffix("]")):
        why = f"{host} is not an address of this machine alone, and answers to it would not be encrypted"
        raise ConfigError(where, why, _LISTEN_HINT)
