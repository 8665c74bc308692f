"""Spells settings for people: as lines of hookproxy.toml, and in words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from ..model.approval_settings import NOT_TOLD
from ..model.secret_settings import SecretSettings
from ..model.settings import ConsoleUse, OnAsk, OnFailure, Settings
from .load import KEYS_OF_SETTINGS, SPELLINGS

_UNSET: Final = (
    *("audit_file", "audit_chain_key_file", "audit_sign_key", "audit_max_file_bytes", "audit_keep_files"),
    *("otel_endpoint", "lock", "secrets", "approvals"),
)
"""Settings that are empty or 0 if the file does not have their key."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes."""


def setting_line(settings: Settings, name: str) -> str:
    """The line of hookproxy.toml that gives the setting of this name the value that it has, such as `strict = true`."""
    key, value = KEYS_OF_SETTINGS[name], getattr(settings, name)
    if name in _UNSET and (not value or value == NOT_TOLD):
        return f"{key} is not set"
    if name in SPELLINGS:
        value = SPELLINGS[name][value]
    elif key == "on_ask_fallback":
        word = str(settings.console or settings.on_ask_fallback)
        value = {"command": settings.prompter} if settings.prompter else word
    elif name in TABLES:
        value = TABLES[name](settings)
    elif name == "audit_chain" and settings.audit_chain_key_file:
        value = "keyed"
    return f"{key} = {_text(value)}"


def _roots(settings: Settings) -> dict[str, object]:
    rule = settings.roots
    if rule.given is not None:
        return {"give": [address for address, _name in rule.given]} if rule.given else {"pass": False}
    return {"allow": list(rule.allowed[-1])} if rule.allowed else {"pass": True}


def _lock(settings: Settings) -> dict[str, object]:
    lock = settings.lock
    if lock is None:
        return {}
    return {"file": lock.file, "on_change": lock.on_change, "create": lock.create, "hidden_text": lock.hidden_text}


def _approvals(settings: Settings) -> dict[str, object]:
    approvals, hook = settings.approvals, settings.approvals.webhook
    if hook is None:
        return {"desktop": approvals.desktop}
    table = {"url": hook.url, "secret": str(hook.secret), "listen": hook.listen}
    webhook = {**table, **({"public_url": hook.public_url} if hook.public_url else {})}
    return {**({"desktop": True} if approvals.desktop else {}), "webhook": webhook}


def _secrets(settings: Settings) -> dict[str, object]:
    secrets = settings.secrets or SecretSettings()
    values = {name: str(source) for name, source in secrets.values.items()}
    off = [{"tool": entry.tool, "server": entry.server} for entry in secrets.off]
    restore = [{"tool": entry.tool, "server": entry.server, "rules": entry.rules} for entry in secrets.restore]
    table: dict[str, object] = {"detectors": dict(secrets.detectors), "values": values, "allow": secrets.allow}
    return {
        key: value for key, value in {**table, "skip": secrets.skip, "off": off, "restore": restore}.items() if value
    }


TABLES: Final[Mapping[str, Callable[[Settings], dict[str, object]]]] = {
    "roots": _roots,
    "lock": _lock,
    "approvals": _approvals,
    "secrets": _secrets,
}
"""What is set of each table that is one setting, as its keys."""


def ask_fallback(settings: Settings) -> str:
    """What happens if a person should be asked and the agent cannot ask, in words, with the key that decides it."""
    if settings.on_ask in (OnAsk.DENY, OnAsk.ALLOW):
        return str(settings.on_ask)
    if settings.approvers:
        who = ", ".join(settings.approvers)
        if settings.prompter and settings.on_ask is not OnAsk.CONSOLE:
            return f"{settings.prompter[0]} asks (on_ask_fallback), and never the user's agent: roles.approver is {who}"
        waits = settings.on_ask is OnAsk.CONSOLE or settings.console is ConsoleUse.ALWAYS
        while_open = "" if waits else " while one is open, and else the call is refused"
        return f"{who} on a console of the gateway{while_open}, and never who has asked for the call (roles.approver)"
    hook = settings.approvals.webhook
    webhook = "" if hook is None else f"the webhook {urlsplit(hook.url).netloc}"
    if settings.on_ask is OnAsk.CONSOLE:
        return f"{webhook and f'{webhook}, '}hookproxy console and hookproxy top ask"
    return f"if the agent cannot ask, {webhook and f'{webhook} asks; without it, '}{_without_webhook(settings)}"


def _without_webhook(settings: Settings) -> str:
    consoles = "hookproxy console or hookproxy top"
    if settings.console is ConsoleUse.ALWAYS:
        return f'{consoles} asks instead (on_ask_fallback = "console")'
    if settings.prompter:
        return f"{settings.prompter[0]} asks instead (on_ask_fallback)"
    if settings.console is ConsoleUse.IF_OPEN and settings.approvals.desktop:
        return f'{consoles} asks, and a notification says so (on_ask_fallback = "auto")'
    if settings.console is ConsoleUse.IF_OPEN:
        return f'{consoles} asks while one is open, and else the call is refused (on_ask_fallback = "auto")'
    done = "allowed" if settings.on_ask_fallback is OnFailure.ALLOW else "refused"
    return f'the call is {done} (on_ask_fallback = "{settings.on_ask_fallback}")'


def _text(value: object) -> str:
    """A value as TOML has it: its strings and numbers are spelled as in JSON."""
    if isinstance(value, dict):
        members = ", ".join(f"{_key(key)} = {_text(member)}" for key, member in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    """A key as TOML has it: one of other signs is a string."""
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
