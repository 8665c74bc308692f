"""Finds and reads hookproxy.toml and the hook files that it or the command line names; gives groups of hooks.

Three layers, in this order: the user's own file, or the one that `--config` puts in its place; the rest of the command
line; the administrator's files (`managed`). Nothing is loaded because it lies in the working directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.dialect import Dialect, Group
from ..dialects.own.hook_file import OWN, own_hook
from ..dialects.shared.hook_file import located
from ..model.errors import ConfigError, UserError
from ..model.settings import OnFailure, Settings
from ..trust.sources import FileContext, Layer, ManagedSummary, store_path
from .hook_files import Read, Use, dialect_named, read_use, short_form

if TYPE_CHECKING:
    from ..trust.trusted_files import Trust
    from .models import ConfigFile

MANAGED_FOLDER = "/etc/hookproxy"
"""The administrator's folder. A constant: what a user could set, a user could switch off."""

KEYS: Final = {
    "on_failure": "on_failure",
    "on_ask": "on_ask",
    "on_ask_fallback": "on_ask_fallback",
    "prompter": "on_ask_fallback",
    "feedback": "feedback",
    "max_message_bytes": "max_message_bytes",
    "audit_file": "audit.file",
    "audit_required": "audit.required",
    "audit_digest": "audit.arguments",
    "audit_all_calls": "audit.calls",
    "audit_chain": "audit.chain",
    "audit_shared": "audit.shared",
    "audit_max_file_bytes": "audit.max_file_bytes",
    "audit_redact": "audit.redact",
    "audit_redact_keys": "audit.redact_keys",
    "otel": "otel.enabled",
    "otel_endpoint": "otel.endpoint",
    "allow": "permissions.allow",
    "ask": "permissions.ask",
    "deny": "permissions.deny",
    "hide_denied": "permissions.hide_denied",
    "aliases": "tools",
    "limits": "limits",
}
"""The settings, by the key of hookproxy.toml that sets each."""


class Loaded(Struct, frozen=True):
    """All that is configured: the groups in the order in which they are asked, and what start-up says."""

    settings: Settings
    groups: tuple[Group, ...]
    notes: tuple[str, ...]
    path: str = ""
    """Our own file that was read; empty: none."""
    managed: ManagedSummary | None = None
    trust: Trust | None = None
    """What is run only as long as it is what was trusted; None: that is not required."""


def load(config: str | None, hooks: Sequence[str], audit: str | None, environ: Mapping[str, str], cwd: str) -> Loaded:
    """Read all that `--config`, `--hooks` and `--audit` name; without `--config` the user's own file, if any.

    The groups stand in this order: `[[use]]` as in the file, the file's own `[[hooks.EVENT]]`, `--hooks` as
    on the command line, what is managed. Raises ConfigError or UserError for whatever cannot be read or understood,
    and for what is not trusted where that is required.
    """
    file_context = FileContext(environ, cwd)
    own = users_own(file_context)
    given = users_layer(own if config is None else file_context.find(config, cwd), hooks, audit, file_context)
    if own and config is not None and not given.require_trust:
        given = replace(given, require_trust=_trust_is_required(own, FileContext({}, "").text(own)))
    if not given.require_trust and any(_trust_was_required(path, file_context) for path in {given.source, own} - {""}):
        given = replace(given, require_trust=True)
    managed = _managed(environ)
    if managed:
        from .managed_merge import joined

        settings, groups, notes, ruling = joined(given, managed)
        loaded = Loaded(settings, groups, notes, given.source, ruling)
    else:
        loaded = Loaded(given.settings, given.groups, given.notes, given.source)
    if loaded.settings.audit_required and not loaded.settings.audit_file:
        where = given.source or (managed[-1].source if managed else "")
        raise ConfigError(where, "audit.required is true, but no file is named", "set audit.file, or use --audit FILE")
    if given.require_trust or any(one.require_trust for one in managed):
        from ..trust.trusted_files import trusted

        loaded = replace(loaded, trust=trusted(loaded.groups, given, file_context))
    return loaded


def users_layer(
    path: str, hooks: Sequence[str], audit: str | None, file_context: FileContext, by: str = "--hooks"
) -> Layer:
    """What the file at `path`, if it is not empty, and the command line configure; `by` names the hooks' files."""
    found = layer(path, file_context) if path else Layer("")
    if found.managed_only:
        hint = f"it is for {os.path.join(MANAGED_FOLDER, 'managed.toml')}"
        raise ConfigError(path, "managed_only is the administrator's to say", hint)
    if audit is not None:
        settings = replace(found.settings, audit_file=_audit_file(audit, file_context.cwd, file_context))
        found = replace(found, settings=settings, set_by={**found.set_by, "audit_file": f"--audit {audit}"})
    read = [one for item in hooks for one in read_use(short_form(item, file_context.cwd, by), file_context)]
    named = {group.source: f"{group.dialect.name}={group.source}" for group, _ in read}
    return replace(_with(found, read), by_option=named)


def _managed(environ: Mapping[str, str]) -> Sequence[Layer]:
    """The administrator's layers; none where there is no such folder, which is all that is looked at then."""
    try:
        os.lstat(MANAGED_FOLDER)
    except FileNotFoundError:
        return ()
    except OSError:
        pass  # it may be there: reading it will say what is wrong
    from ..trust.managed_files import layers

    return layers(MANAGED_FOLDER, layer, environ)


def _trust_was_required(path: str, file_context: FileContext) -> bool:
    """The file said so when it was trusted: to take that out of it needs as much trust as any other change."""
    try:
        store = store_path(file_context.environ, file_context.home)
    except UserError:  # nothing has been trusted where there is no place to remember it
        return False
    if not os.path.lexists(store):
        return False
    from ..trust.trust_store import read_store

    entry = read_store(store).get(path)
    return entry is not None and entry.text is not None and _trust_is_required(path, entry.text)


def _trust_is_required(path: str, text: str) -> bool:
    """The text of a file of ours says so. Of the user's own it holds although `--config` has taken its place."""
    import tomllib

    from .errors import not_toml

    if "require_trust" not in text:  # all else in it is not in use, and may be broken
        return False
    try:
        return tomllib.loads(text).get("require_trust") is not False
    except tomllib.TOMLDecodeError as error:
        raise not_toml(path, text, str(error)) from None


def users_own(file_context: FileContext) -> str:
    """The path of the user's own hookproxy.toml; empty where there is none."""
    folder = file_context.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # a relative one is to be ignored, says the XDG specification
        if not file_context.home:
            return ""
        folder = os.path.join(file_context.home, ".config")
    path = os.path.join(folder, "hookproxy", "hookproxy.toml")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        pass  # it may be there: reading it will say what is wrong
    return path


def layer(path: str, file_context: FileContext) -> Layer:
    """What one file of ours configures. Raises ConfigError."""
    from .models import DIALECT_OPTIONS, WARM_OPTIONS, parse  # pydantic: 40 ms, for those who have this file only
    from .validate import check_patterns

    file = parse(path, file_context.text(path))
    folder = os.path.dirname(path)
    read: list[Read] = []
    for number, table in enumerate(file.use):
        where = f"{path}: use[{number}]"
        dialect: Dialect | None = dialect_named(table.dialect, where) if table.dialect is not None else None
        options = table.model_dump(include=DIALECT_OPTIONS, exclude_unset=True)
        warmth = table.model_dump(include=WARM_OPTIONS, exclude_unset=True)
        use = Use(table.file, folder, where, dialect, table.tool_names, table.on_failure, options, warmth)
        read.extend(read_use(use, file_context))
    read.append((_own_group(file, path), ()))
    check_patterns(file, path)
    given = {name: f"{path}: {key}" for name, key in KEYS.items() if _says(file, key)}
    if _says(file, "preset"):
        given.setdefault("aliases", f"{path}: preset")
    settings = _settings(file, path, file_context)
    found = Layer(path, settings, given, managed_only=file.managed_only, require_trust=file.require_trust)
    return _with(found, read)


def _with(found: Layer, read: Sequence[Read]) -> Layer:
    """The layer with what else has been read; a file without hooks is noted and makes no group."""
    groups = tuple(group for group, _ in read if group.hooks)
    notes = tuple(note for _, notes in read for note in notes)
    return replace(found, groups=found.groups + groups, notes=found.notes + notes)


def _says(file: ConfigFile, key: str) -> bool:
    """The file itself has this key, and not only its default."""
    table, _, name = key.rpartition(".")
    inner = getattr(file, table) if table else file
    return name in inner.model_fields_set


def _settings(file: ConfigFile, path: str, file_context: FileContext) -> Settings:
    from . import validate

    folder = os.path.dirname(path)
    return Settings(
        on_failure=file.on_failure,
        on_ask=file.on_ask,
        on_ask_fallback=OnFailure.ALLOW if file.on_ask_fallback == "allow" else OnFailure.DENY,
        prompter=_prompter(file, folder),
        feedback=file.feedback,
        max_message_bytes=file.max_message_bytes,
        audit_file=_audit_file(file.audit.file, folder, file_context),
        audit_required=file.audit.required,
        audit_digest=file.audit.arguments == "digest",
        audit_all_calls=file.audit.calls == "all",
        audit_chain=file.audit.chain,
        audit_shared=file.audit.shared,
        audit_max_file_bytes=file.audit.max_file_bytes or 0,
        audit_redact=tuple(file.audit.redact),
        audit_redact_keys=tuple(file.audit.redact_keys),
        otel=file.otel.enabled,
        otel_endpoint=file.otel.endpoint or "",
        allow=tuple(file.permissions.allow),
        ask=tuple(file.permissions.ask),
        deny=tuple(file.permissions.deny),
        hide_denied=file.permissions.hide_denied,
        aliases=validate.aliases(file, path),
        limits=validate.limits(file, path),
    )


def _audit_file(file: str | None, folder: str, file_context: FileContext) -> str:
    """With a slash at its end, it stays a folder that may not be there yet."""
    return (file_context.find(file, folder) + "/" * file.endswith("/")) if file else ""


def _prompter(file: ConfigFile, folder: str) -> tuple[str, ...]:
    command = () if isinstance(file.on_ask_fallback, str) else tuple(file.on_ask_fallback.command)
    return located(command, folder)


def _own_group(file: ConfigFile, path: str) -> Group:
    folder = os.path.dirname(path)
    hooks = [
        own_hook(
            table.model_dump(by_alias=True, exclude_unset=True),
            event,
            f"{path}: hooks.{event}[{number}]",
            folder,
        )
        for event in OWN.events.values()
        for number, table in enumerate(file.hooks.for_event(event))
    ]
    return Group(OWN, path, tuple(hooks), OWN.tool_names, match_all_names=True)
