"""Finds and reads hookproxy.toml and the hook files that it or the command line names, and returns groups of hooks.

There are three layers, in this order: the user's own file, or the file that `--config` names instead; the rest of the
command line; the administrator's files (`managed`). Nothing is loaded only because it is in the working directory.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.dialect import Dialect, Group
from ..dialects.shared.hook_file import resolve_program
from ..model.approval_settings import NOT_TOLD
from ..model.errors import ConfigError, UserError
from ..model.hooks import Event, HookSpec
from ..model.lock_settings import LockSettings
from ..model.model_endpoint import ModelEndpoint
from ..model.pack_settings import NamedPacks
from ..model.settings import ROOTS_OF_AGENT, ConsoleUse, OnFailure, Results, SeenNames, Settings
from ..trust.sources import FileContext, FileSnapshot, Layer, ManagedSummary, Watched, state_folder, store_path
from .hook_files import LoadedHookFile, Use, dialect_named, parse_option, read_use
from .secret_files import with_credentials_folder

if TYPE_CHECKING:
    from ..trust.check_unchanged import Trust
    from .models import ConfigFile
    from .policy_in_force import InForce, PolicyContent

MANAGED_FOLDER = "/etc/hookproxy"
"""The administrator's folder. It is a constant: a user could turn off whatever a user can set."""

KEYS_OF_SETTINGS: Final = {
    "on_failure": "on_failure",
    "on_ask": "on_ask",
    "on_ask_fallback": "on_ask_fallback",
    "prompter": "on_ask_fallback",
    "console": "on_ask_fallback",
    "ask_seconds": "ask_seconds",
    "approvals": "approvals",
    "feedback": "feedback",
    "strict": "strict",
    "on_cut_input": "on_cut_input",
    "max_message_bytes": "max_message_bytes",
    "hold_notifications": "hooks.notifications",
    "max_depth": "max_depth",
    "audit_file": "audit.file",
    "audit_enabled": "audit.enabled",
    "audit_required": "audit.required",
    "audit_begun": "audit.begun",
    "audit_arguments": "audit.arguments",
    "audit_results": "audit.results",
    "audit_all_calls": "audit.calls",
    "audit_chain": "audit.chain",
    "audit_chain_key_file": "audit.chain_key_file",
    "audit_sign_key": "audit.sign_key",
    "audit_checkpoint_lines": "audit.checkpoint_lines",
    "audit_checkpoint_seconds": "audit.checkpoint_seconds",
    "audit_shared": "audit.shared",
    "audit_max_file_bytes": "audit.max_file_bytes",
    "audit_keep_files": "audit.keep_files",
    "audit_redact": "audit.redact",
    "audit_redact_keys": "audit.redact_keys",
    "otel": "otel.enabled",
    "otel_endpoint": "otel.endpoint",
    "remote_connect_seconds": "remote.connect_seconds",
    "remote_silence_seconds": "remote.silence_seconds",
    "remote_connections": "remote.connections",
    "guard_idle_seconds": "guard.idle_seconds",
    "guard_fail_closed": "guard.fail_closed",
    "allow": "permissions.allow",
    "ask": "permissions.ask",
    "deny": "permissions.deny",
    "agent_rules": "use",
    "default_permission": "permissions.default",
    "hide_denied": "permissions.hide_denied",
    "unreadable": "permissions.unreadable",
    "check_types": "calls.check_types",
    "aliases": "tools",
    "shown_tools": "tools",
    "flow_sources": "flow.sources",
    "flow_sinks": "flow.sinks",
    "lock": "lock",
    "secrets": "secrets",
    "auto_aliases": "aliases",
    "limits": "limits",
    "roots": "roots",
}
"""The fields of `Settings`, each with the key of hookproxy.toml that sets it."""

_RULE_SETTINGS: Final = (
    *(name for name, key in KEYS_OF_SETTINGS.items() if key.startswith("permissions.")),
    "rule_places",
)
"""The settings that the table `[permissions]` makes."""

SPELLINGS: Final[Mapping[str, Mapping[object, str]]] = {
    "audit_all_calls": {True: "all", False: "judged"},
    "hold_notifications": {True: "hold", False: "pass"},
    "auto_aliases": {True: "auto", False: "off"},
}
"""Settings that are yes or no here, and a word in the file."""

DEFAULT_AUDIT: Final = {
    "audit_results": Results.NONE,  # waiting for responses would take time of every call
    "audit_max_file_bytes": 20_000_000,  # some 20,000 calls
    "audit_keep_files": 3,  # so that it takes at most 80 MB
}
"""The settings of the audit file in the state folder, unless the configuration sets them."""


class Loaded(Struct, frozen=True):
    """The whole configuration: the settings, the groups in the order in which they run, and the notes for start-up."""

    settings: Settings
    groups: tuple[Group, ...]
    notes: tuple[str, ...]
    """What does not do what its author wrote, as in `HookList`."""
    remarks: tuple[str, ...] = ()
    """What can never happen behind MCP, as in `HookList`."""
    path: str = ""
    """The hookproxy.toml that was read; empty: none."""
    managed: ManagedSummary | None = None
    project: str = ""
    """The folder that `--project` names; empty: it names none."""
    trust: Trust | None = None
    """Checks that files are still as they were trusted; None: trust is not required."""
    set_by: Mapping[str, str] = {}
    """Where each field of the settings that is not the default is set, for people: file and key, or the option."""
    by_option: Mapping[str, str] = {}
    """The value of `--hooks` for each file that the command line names."""
    watched: Watched | None = None
    """The policy that is only watched; None: there is none."""
    files_read: Mapping[str, FileSnapshot] = {}
    """All files that were read, by path, but for the administrator's."""

    @property
    def all_groups(self) -> tuple[Group, ...]:
        """The groups whose hooks run: those that decide, and those that are only watched."""
        return self.groups if self.watched is None else (*self.groups, *self.watched.groups)

    @property
    def has_policy(self) -> bool:
        """Some hook, rule, limit, source, sink or table of secrets is configured; it may be only watched."""
        settings = self.settings
        judges = self.groups or settings.has_rules or settings.limits or settings.has_flow or self.watched
        return bool(judges or settings.secrets is not None)

    @property
    def of_watched(self) -> Loaded | None:
        """The policy that is only watched, alone, as a configuration; None: there is none."""
        if self.watched is None:
            return None
        return replace(self, settings=self.watched.settings, groups=self.watched.groups, watched=None)

    @property
    def as_if_enforced(self) -> Loaded:
        """The configuration as if what is only watched were in force."""
        if self.watched is None:
            return self
        from .monitor import enforced

        settings, groups = enforced(self.settings, self.groups, self.watched)
        return replace(self, settings=settings, groups=groups, watched=None)


def load(
    config: str | None,
    hooks: Sequence[str],
    audit: str | None,
    environ: Mapping[str, str],
    cwd: str,
    project: str | None = None,
) -> Loaded:
    """Read the files that `--config`, `--hooks` and `--audit` name; without `--config`, the user's own file if any.

    The order of the groups is: `[[use]]` as in the file, `[[hooks.EVENT]]` of the file, `--hooks` as on the command
    line, managed groups. Raises ConfigError or UserError for a file that cannot be read or is invalid, and for a file
    that is not trusted when trust is required. `project` is the folder in which the hooks of hook files run, except the
    administrator's; None: it follows from each file's place.
    """
    return load_by(FileContext(environ, cwd, project=find_project(project, cwd)), config, hooks, audit)


def load_by(
    file_context: FileContext, config: str | None, hooks: Sequence[str] = (), audit: str | None = None
) -> Loaded:
    """As `load`; packs that are tried (`FileContext.pack_folders`) count whether the file uses them or not."""
    cwd, pack_folders = file_context.cwd, file_context.pack_folders
    own_file = find_own_file(file_context)
    user = user_layer(own_file if config is None else file_context.find(config, cwd), hooks, audit, file_context)
    if own_file and config is not None and not user.require_trust:
        user = replace(user, require_trust=_requires_trust(own_file, FileContext({}, "").text(own_file)))
    if pack_folders:
        packs = user.packs or NamedPacks("packs")
        user = replace(user, packs=replace(packs, use=tuple(dict.fromkeys((*packs.use, *pack_folders)))))
    if user.packs is not None:
        user = replace(user, packs=_with_own_keys(user.packs, user.source, own_file, file_context))
    if not user.require_trust and any(_required_trust(path, file_context) for path in {user.source, own_file} - {""}):
        user = replace(user, require_trust=True)
    loaded = complete(user, file_context, file_context.project)
    return replace(loaded, files_read=file_context.files_read)


def load_isolated(
    config: str | None, hooks: Sequence[str], environ: Mapping[str, str], cwd: str, project: str | None = None
) -> Loaded:
    """As `load` for tests of a policy, which must not depend on the machine: only what is named counts, trusted or not.

    Neither the administrator's files nor the user's own file are read.
    """
    project_folder = find_project(project, cwd)
    file_context = FileContext(environ, cwd, project=project_folder, isolated=True)
    path = "" if config is None else file_context.find(config, cwd)
    return complete(user_layer(path, hooks, None, file_context), file_context, project_folder)


def complete(
    user: Layer, file_context: FileContext, project: str = "", bundle: InForce | None = None, candidate: str = ""
) -> Loaded:
    """The whole configuration of a user's layer, or a gateway's: with the administrator's files, and the default audit.

    `bundle` is a signed policy that counts like these. `candidate` is the folder of the policy that is to take the
    place of the one that the administrator's files name. Raises ConfigError and UserError as `load`.
    """
    environ = file_context.environ
    managed = () if file_context.isolated else managed_layers(environ)
    if any(layer.policy is not None for layer in managed):
        from .policy_in_force import root_owned, with_bundle

        managed, bundle = with_bundle(managed, bundle, root_owned(policy_for_runs, environ), candidate)
    elif bundle is not None:
        managed = (*managed, *bundle.layers)
    user = with_used_packs(user, managed, file_context)
    if managed:
        from .managed_merge import merge

        settings, groups, notes, summary = merge(user, managed)
        remarks = (*user.remarks, *(remark for layer in managed for remark in layer.remarks))
        loaded = Loaded(settings, groups, notes, remarks, user.source, summary, project)
        set_by = {**user.set_by, **summary.set_by, **_kept_by_user(settings, user, summary.set_by)}
    else:
        loaded = Loaded(user.settings, user.groups, user.notes, user.remarks, user.source, project=project)
        set_by = dict(user.set_by)
    loaded = replace(loaded, set_by=set_by, by_option=user.by_option)
    loaded = _divided(loaded, user, managed)
    check_shown_tools(loaded.settings)
    if bundle is not None:
        settings = replace(loaded.settings, bundle=bundle.bundle)
        loaded = replace(loaded, settings=settings, notes=(*loaded.notes, *bundle.notes))
    loaded = _with_default_audit(loaded, set_by, state_folder(environ, file_context.home))
    if loaded.settings.audit_required and not loaded.settings.audit_file:
        where = user.source or (managed[-1].source if managed else "")
        off = not loaded.settings.audit_enabled
        why = "audit.enabled is false" if off else "there is no folder for it"
        hint = "remove audit.enabled" if off else "set audit.file, HOME or XDG_STATE_HOME, or use --audit FILE"
        raise ConfigError(where, f"audit.required is true, but {why}", hint)
    required = not file_context.isolated and (user.require_trust or any(layer.require_trust for layer in managed))
    if required or user.pinned:
        loaded = replace(loaded, trust=_trust(loaded, user, file_context, required=required))
    loaded = replace(loaded, remarks=(*loaded.remarks, *_allow_rules_alone(loaded)))
    if loaded.watched is not None:  # its hooks get what the audit may need
        settings = audited_like(loaded.watched.settings, loaded.settings)
        loaded = replace(loaded, watched=replace(loaded.watched, settings=settings))
    return loaded


def with_used_packs(user: Layer, managed: Sequence[Layer], file_context: FileContext) -> Layer:
    """The user's layer with the packs that it uses. Raises ConfigError, UserError."""
    if user.packs is None or not user.packs.use:
        return user
    from .pack_layer import with_packs

    return with_packs(user, [layer.packs for layer in managed if layer.packs is not None], file_context, read_layer)


def _trust(loaded: Loaded, user: Layer, file_context: FileContext, *, required: bool) -> Trust:
    """Checks that files are as they were trusted, if that is required, and those of packs as they were verified; but
    not those of packs that are only tried. Raises ConfigError.
    """
    from ..trust.check_unchanged import hold, verify

    if not required:
        return hold(loaded.all_groups, user.pinned)
    tried = tuple(os.path.join(folder, "") for folder, _environment in file_context.pack_folders.values())
    checked = [group for group in loaded.all_groups if not (tried and group.source.startswith(tried))]
    return verify(checked, user, file_context)


def _divided(loaded: Loaded, user: Layer, managed: Sequence[Layer]) -> Loaded:
    """The configuration without what is only watched, which is a policy of its own."""
    layers = (user, *managed)
    marks = (
        any(layer.next is not None or layer.settings.watched_rules is not None for layer in layers)
        or any(group.watched for group in loaded.groups)
        or any(limit.watched for layer in layers for limit in layer.settings.limits)
        or any(rule.watched for layer in layers for rule in layer.settings.agent_rules)
        or any(sink.watched for layer in layers for sink in layer.settings.flow_sinks)
    )
    if not marks:
        return loaded
    from .monitor import divided

    settings, groups, watched = divided(loaded.settings, loaded.groups, user, managed, _RULE_SETTINGS)
    notes = () if watched is None else watched.notes
    return replace(loaded, settings=settings, groups=groups, watched=watched, notes=(*loaded.notes, *notes))


def audited_like(settings: Settings, enforced: Settings) -> Settings:
    """The settings with those of the audit, and whose rules they are, from the policy in force: there is one audit."""
    names = (name for name in Settings.__struct_fields__ if name.startswith(("audit_", "otel")) or name == "approvers")
    return replace(settings, **{name: getattr(enforced, name) for name in names})


def check_shown_tools(settings: Settings) -> None:
    """Raise ConfigError if two tools have one name for the agent."""
    if not settings.shown_tools:
        return
    from ..model.shown_tools import collision

    if found := collision(settings.shown_tools):
        shown, other = found
        why = f"{shown.name!r} is the name of the tool {other!r} for the agent, too"
        raise ConfigError(f"{shown.place}.rename", why, f"choose another name, or hide or rename {other!r}")


def failing_closed(loaded: Loaded) -> Loaded:
    """The configuration in which every failure of a hook refuses, whatever files say: that of `--fail-closed`."""

    def strict(settings: Settings) -> Settings:
        return replace(settings, on_failure=OnFailure.DENY, on_cut_input=OnFailure.DENY, fail_closed=True)

    def whole(settings: Settings) -> Settings:
        return replace(strict(settings), managed=settings.managed and strict(settings.managed))

    set_by = {**loaded.set_by, "on_failure": "--fail-closed", "on_cut_input": "--fail-closed"}
    watched = loaded.watched and replace(loaded.watched, settings=whole(loaded.watched.settings))
    return replace(loaded, settings=whole(loaded.settings), set_by=set_by, watched=watched)


def _kept_by_user(settings: Settings, user: Layer, managed: Collection[str]) -> dict[str, str]:
    """Where the user's values are set that count although the setting is managed: they are stricter."""
    return {
        name: place
        for name, place in user.set_by.items()
        if name in managed and getattr(settings, name) == getattr(user.settings, name)
    }


def _allow_rules_alone(loaded: Loaded) -> Iterator[str]:
    """A sentence about allow rules where nothing else asks or refuses: somebody may believe that it refuses the others.

    It begins with the place of the first one.
    """
    settings = loaded.settings
    layered = settings.pack_rules or (settings.managed is not None and settings.managed.has_rules)
    others = settings.deny or settings.ask or settings.has_flow or loaded.all_groups or loaded.watched or layered
    if settings.allow and settings.default_permission == "allow" and not others:
        place = settings.rule_places.get(f"allow {settings.allow[0]}", "permissions.allow[0]")
        repair = 'write default = "deny" below [permissions] if only these are meant'
        yield f"{place}: allow refuses nothing: other tools are allowed, too ({repair})"


def _with_default_audit(loaded: Loaded, set_by: Collection[str], folder: str) -> Loaded:
    """The configuration with the audit file in the state folder, unless it names another one or wants none."""
    settings = loaded.settings
    if not settings.audit_enabled:
        return replace(loaded, settings=replace(settings, audit_file=""))
    if settings.audit_file:
        return loaded
    if not folder:
        remark = "no audit log is kept, because there is no home folder: set HOME or XDG_STATE_HOME, or audit.file"
        return replace(loaded, remarks=(*loaded.remarks, remark))
    values = {name: value for name, value in DEFAULT_AUDIT.items() if name not in set_by}
    path = os.path.join(folder, "audit.jsonl")
    return replace(loaded, settings=replace(settings, audit_file=path, audit_default=True, **values))


def find_project(folder: str | None, cwd: str) -> str:
    """The absolute path that `--project` names; empty: it names none. Raises UserError."""
    if folder is None:
        return ""
    path = FileContext({}, cwd).find(folder, cwd)
    if not os.path.isdir(path):
        raise UserError(f"--project {folder}: there is no folder {path}", "name the folder of the project")
    return path


def make_data_folders(loaded: Loaded) -> list[str]:
    """Create the data folders of all plugins. Returns a note on each one that cannot be created."""
    notes = []
    for folder in dict.fromkeys(group.plugin.data for group in loaded.all_groups if group.plugin and group.plugin.data):
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            notes.append(f"{folder}: cannot be created, so hooks of its plugin may fail: {error.strerror}")
    return notes


def user_layer(
    path: str, hooks: Sequence[str], audit: str | None, file_context: FileContext, option: str = "--hooks"
) -> Layer:
    """The configuration of the file at `path` (empty: none) and of the command line; `option` names the hook files."""
    layer = read_layer(path, file_context) if path else Layer("")
    if layer.managed_only:
        hint = f"it belongs in {os.path.join(MANAGED_FOLDER, 'managed.toml')}"
        raise ConfigError(path, "only the administrator may set managed_only", hint)
    if layer.policy is not None:
        hint = f"it belongs in {os.path.join(MANAGED_FOLDER, 'managed.toml')}, or in gateway.toml"
        raise ConfigError(path, "only the administrator may set [policy]", hint)
    if audit is not None:
        audit_path, option_text = _audit_file(audit, file_context.cwd, file_context), f"--audit {audit}"
        settings = replace(layer.settings, audit_file=audit_path, audit_enabled=True)
        set_by = {**layer.set_by, "audit_file": option_text, "audit_enabled": option_text}
        layer = replace(layer, settings=settings, set_by=set_by)
    added: list[LoadedHookFile] = []
    by_option: dict[str, str] = {}
    for item in hooks:
        known = set(file_context.files_read)
        use = replace(parse_option(item, file_context.cwd, option), model=layer.model)
        of_item = list(read_use(use, file_context))
        for hook_file in of_item:
            by_option[hook_file.group.source] = f"{hook_file.group.dialect.name}={hook_file.named_by}"
        others = [path for path in file_context.files_read if path not in known and path not in by_option]
        by_option |= dict.fromkeys(others, f"{of_item[0].group.dialect.name}={of_item[0].named_by}")
        added += of_item
    return replace(_with_groups(layer, added), by_option=by_option)


def managed_layers(environ: Mapping[str, str]) -> Sequence[Layer]:
    """The administrator's layers. Without the folder there are none, and nothing else is looked at."""
    try:
        os.lstat(MANAGED_FOLDER)
    except FileNotFoundError:
        return ()
    except OSError:
        pass  # it may exist: reading it reports what is wrong
    from ..trust.managed_files import layers

    return layers(MANAGED_FOLDER, read_layer, environ)


def _required_trust(path: str, file_context: FileContext) -> bool:
    """Whether the file required trust when it was trusted: removing that line needs trust like any other change."""
    try:
        store = store_path(file_context.environ, file_context.home)
    except UserError:  # without a folder for the store, nothing has been trusted
        return False
    if not os.path.lexists(store):
        return False
    from ..trust.trust_store import read_store

    entry = read_store(store).get(path)
    return entry is not None and entry.text is not None and _requires_trust(path, entry.text)


def _requires_trust(path: str, text: str) -> bool:
    """Whether this text of a hookproxy.toml requires trust.

    `require_trust` in the user's own file applies even if `--config` names another file.
    """
    from ..model.toml import NotToml, parse_toml
    from .errors import toml_error

    if "require_trust" not in text:  # nothing else of this file is used: it may be invalid
        return False
    try:
        return parse_toml(text).get("require_trust") is not False
    except NotToml as problem:
        raise toml_error(path, text, problem) from None


def _with_own_keys(packs: NamedPacks, path: str, own_file: str, file_context: FileContext) -> NamedPacks:
    """The packs of a user's layer, with the keys of the user's own file, which `--config` does not replace.

    Raises ConfigError for keys in another file: whoever writes it would choose whose packs count.
    """
    if path == own_file:
        return packs
    if packs.keys is not None:
        hint = "write them into ~/.config/hookproxy/hookproxy.toml, or into the administrator's managed.toml"
        raise ConfigError(packs.place, "its keys would not count here", hint)
    if not own_file or "packs" not in file_context.text(own_file):
        return packs
    own = read_layer(own_file, file_context).packs
    return packs if own is None else replace(packs, keys=own.keys)


def find_own_file(file_context: FileContext) -> str:
    """The path of the user's own hookproxy.toml; empty if there is none."""
    folder = file_context.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the XDG specification says that a relative path is ignored
        if not file_context.home:
            return ""
        folder = os.path.join(file_context.home, ".config")
    path = os.path.join(folder, "hookproxy", "hookproxy.toml")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        pass  # it may exist: reading it reports what is wrong
    return path


def read_layer(path: str, file_context: FileContext) -> Layer:
    """Read one hookproxy.toml and the files that it names. Raises ConfigError."""
    return _read_layer(path, file_context)


def _read_layer(path: str, file_context: FileContext, *, is_second: bool = False) -> Layer:
    """Read a file; `is_second`: `[monitor]` names it, so it names none itself."""
    from .models import ConfigFile  # only with such a file
    from .parse import read_tables, validated

    text = file_context.text(path)
    tables = read_tables(path, text)
    file = validated(path, text, tables, ConfigFile)
    if is_second and file.monitor is not None:
        raise ConfigError(
            path, "is watched, and watches a policy itself", "name another file, or remove [monitor] from this one"
        )
    return layer_of(file, tables, path, text, file_context)


def policy_for_runs(path: str, file_context: FileContext) -> PolicyContent:
    """Read the policy.toml of a signed policy for a run, which is not a server of a gateway. Raises ConfigError."""
    from .gateway_models import PolicyFile
    from .parse import read_tables, validated
    from .policy_in_force import PolicyContent

    text = file_context.text(path)
    tables = read_tables(path, text)
    file = validated(path, text, tables, PolicyFile)
    layer = layer_of(file, tables, path, text, file_context)
    keys = [f"servers.{name}" for name in file.servers] + ["permissions.for"] * bool(file.permissions.for_users)
    remarks = (*layer.remarks, *(f"{path}: {key}: it holds at gateways only, and not here" for key in keys))
    return PolicyContent(replace(layer, remarks=remarks))


def layer_of(
    file: ConfigFile,
    tables: Mapping[str, object],
    path: str,
    text: str,
    file_context: FileContext,
    within: tuple[str, ...] = (),
) -> Layer:
    """The layer of a file, or of a table in it that `within` names; `tables` are its values before validation.

    Reads the hook files that it names. Raises ConfigError.
    """
    prefix = "".join(f"{name}." for name in within)
    from .models import DIALECT_OPTIONS, WARM_OPTIONS, keys_set
    from .validate import check_patterns

    folder = os.path.dirname(path)
    model = _model(file, f"{path}: {prefix}model", folder, file_context)
    added: list[LoadedHookFile] = []
    for number, table in enumerate(file.use):
        where = f"{path}: {prefix}use[{number}]"
        dialect: Dialect | None = (
            dialect_named(table.dialect, f"{where}.dialect") if table.dialect is not None else None
        )
        set_keys = keys_set(table)
        options = {key: value for key, value in set_keys.items() if key in DIALECT_OPTIONS}
        warm_options = {key: value for key, value in set_keys.items() if key in WARM_OPTIONS}
        use = Use(
            table.file, folder, where, dialect, table.tool_names, table.names or SeenNames.BOTH, table.on_failure,
            options, warm_options, table.project or "", sees_values=table.secrets == "values",
            model=model,
        )  # fmt: skip
        hook_files = read_use(use, file_context)
        added.extend(map(_watched, hook_files) if table.mode == "monitor" else hook_files)
    added += (LoadedHookFile(group, path) for group in _own_groups(file, path, prefix, file_context))
    added += (LoadedHookFile(group, path) for group in _interceptors(file, path, prefix))
    check_patterns(file, path)
    set_by = {name: f"{path}: {prefix}{key}" for name, key in KEYS_OF_SETTINGS.items() if _sets(tables, key)}
    if _sets(tables, "preset"):
        set_by.setdefault("aliases", f"{path}: {prefix}preset")
    settings = _settings(file, path, text, file_context, within)
    policy = None
    if file.policy is not None:
        from .policy_table import policy_source

        policy = policy_source(file.policy, f"{path}: {prefix}policy", folder, file_context)
    layer = Layer(path, settings, set_by, (), {}, (), (), file.managed_only, file.require_trust, policy)
    layer = replace(layer, packs=_named_packs(file, path, prefix, file_context), model=model)
    if file.permissions.mode == "monitor":
        from .monitor import with_watched_rules

        layer = with_watched_rules(layer, _RULE_SETTINGS)
    layer = _with_groups(layer, added)
    if model is not None and model.key is None and model.url.startswith("https:"):  # http is only for this machine
        note = f'{path}: {prefix}model: no key is sent to {model.url}: key = "env:NAME" names one'
        layer = replace(layer, remarks=(*layer.remarks, note))
    if file.roots is not None:
        from .roots_table import missing_folders

        layer = replace(layer, notes=(*layer.notes, *missing_folders(settings.roots, f"{path}: {prefix}roots")))
    if file.monitor is None:
        return layer
    from .monitor import check_second

    place = f"{path}: {prefix}monitor.file"
    watched = file_context.find(file.monitor.file, folder)
    file_context.text(watched, place)  # it says where a file is named that is not there
    second = _read_layer(watched, file_context, is_second=True)
    check_second(second, layer, place)
    return replace(layer, next=second)


def _model(file: ConfigFile, where: str, folder: str, file_context: FileContext) -> ModelEndpoint | None:
    """The model that hooks of a file ask; None: there is none. Raises ConfigError."""
    if file.model is None:
        return None
    from .model_table import model_endpoint

    return model_endpoint(file.model, where, folder, file_context)


def _named_packs(file: ConfigFile, path: str, prefix: str, file_context: FileContext) -> NamedPacks | None:
    """The table `[packs]` of a hookproxy.toml. Raises ConfigError."""
    if file.packs is None:
        return None
    from .models import ConfigFile as OwnFile
    from .policy_table import named_packs

    if type(file) is not OwnFile:
        why = "is for hookproxy.toml, and not for gateways"
        raise ConfigError(f"{path}: {prefix}packs", why, "a gateway's policy comes from its own file, or by [policy]")
    return named_packs(file.packs, f"{path}: packs", os.path.dirname(path), file_context)


def _watched(hook_file: LoadedHookFile) -> LoadedHookFile:
    """The hook file as one that is only watched."""
    rules = tuple(replace(rule, watched=True) for rule in hook_file.rules)
    return replace(hook_file, group=replace(hook_file.group, watched=True), rules=rules)


def _with_groups(layer: Layer, added: Sequence[LoadedHookFile]) -> Layer:
    """The layer with more groups, notes and remarks. A group without hooks is left out."""
    groups = tuple(hook_file.group for hook_file in added if hook_file.group.hooks)
    notes = tuple(note for hook_file in added for note in hook_file.notes)
    remarks = tuple(remark for hook_file in added for remark in hook_file.remarks)
    rules = tuple(rule for hook_file in added for rule in hook_file.rules)
    if rules:
        settings = replace(layer.settings, agent_rules=layer.settings.agent_rules + rules)
        layer = replace(layer, settings=settings)
    return replace(layer, groups=layer.groups + groups, notes=layer.notes + notes, remarks=layer.remarks + remarks)


def _sets(tables: Mapping[str, object], key: str) -> bool:
    """Whether the file, which is valid, contains this key; otherwise its default applies."""
    table, _, name = key.rpartition(".")
    inner = tables.get(table, {}) if table else tables
    return isinstance(inner, Mapping) and name in inner


def _settings(file: ConfigFile, path: str, text: str, file_context: FileContext, within: tuple[str, ...]) -> Settings:
    from . import validate

    folder, fallback = os.path.dirname(path), file.on_ask_fallback
    roots = ROOTS_OF_AGENT
    if file.roots is not None:
        from .roots_table import roots_rule

        roots = roots_rule(file.roots, path, text, file_context, within)
    converted: dict[str, object] = {
        "roots": roots,
        "on_ask_fallback": OnFailure.ALLOW if fallback == "allow" else OnFailure.DENY,
        "prompter": () if isinstance(fallback, str) else resolve_program(tuple(fallback.command), folder),
        "console": ConsoleUse(fallback) if fallback in ("auto", "console") else ConsoleUse.NEVER,
        "on_cut_input": OnFailure(file.on_cut_input),
        "audit_file": _audit_file(file.audit.file, folder, file_context),
        "audit_chain": bool(file.audit.chain),
        "audit_sign_key": _sign_key(file, path, file_context),
        "audit_chain_key_file": _chain_key_file(file, path, file_context),
        "agent_rules": (),  # those of the hook files are added where these are read
        "rule_places": validate.rule_places(file.permissions, path, text, (*within, "permissions")),
        "aliases": validate.aliases(file, path, within),
        "shown_tools": validate.shown_tools(file, path, within) if file.tools else (),
        "limits": validate.limits(file, path, text, within),
        "lock": _lock(file, path, within, file_context),
        "approvals": NOT_TOLD,
        "secrets": None,
        "flow_sources": (),
        "flow_sinks": (),
    }
    if file.approvals.desktop or file.approvals.webhook:
        from .approvals_table import approval_settings

        where = f"{path}: {''.join(f'{name}.' for name in within)}approvals"
        converted["approvals"] = approval_settings(file, path, file_context, where)
    if file.secrets is not None:
        from .secrets_table import secret_settings

        converted["secrets"] = secret_settings(file.secrets, path, text, file_context, within)
    if file.flow.sources or file.flow.sinks:
        from .flow_table import flow_settings

        converted["flow_sources"], converted["flow_sinks"] = flow_settings(file.flow, path, text, within)
    return replace(Settings(), **{**dict(_plain_values(file)), **converted})


def _lock(file: ConfigFile, path: str, within: tuple[str, ...], file_context: FileContext) -> LockSettings | None:
    """What pins the servers: the table `[lock]`, or the file of that name beside a file that has no such table."""
    folder = os.path.dirname(path)
    if file.lock is None and (within or not os.path.lexists(os.path.join(folder, "hookproxy.lock"))):
        return None
    from .lock_table import lock_settings

    where = f"{path}: {''.join(f'{name}.' for name in within)}lock"
    settings = lock_settings(file.lock, where, folder, file_context)
    return None if settings is None else replace(settings, config=path)


def _plain_values(file: ConfigFile) -> Iterator[tuple[str, object]]:
    """The settings whose values are those of their keys; a key that may be left out has the default of its setting."""
    for name, key in KEYS_OF_SETTINGS.items():
        value: object = attrgetter(key)(file)
        if name in SPELLINGS:
            yield name, value == SPELLINGS[name][True]
        elif value is not None:
            yield name, tuple(value) if isinstance(value, list) else value


def _audit_file(file: str | None, folder: str, file_context: FileContext) -> str:
    """The absolute path. A slash at its end stays: it means a folder, which may not exist yet."""
    return (file_context.find(file, folder) + "/" * file.endswith("/")) if file else ""


def _chain_key_file(file: ConfigFile, path: str, file_context: FileContext) -> str:
    """The absolute path of the key of a keyed chain; empty if it has none. Raises ConfigError."""
    audit = file.audit
    if audit.chain != "keyed":
        if audit.chain_key_file is not None:
            raise ConfigError(path, "audit.chain_key_file is set, but the chain has no key", 'set chain = "keyed"')
        return ""
    if audit.chain_key_file is None:
        raise ConfigError(path, 'audit.chain is "keyed", but no key is named', "set audit.chain_key_file")
    from ..audit.hash_chain import read_key

    key_file = _key_path(audit.chain_key_file, "audit.chain_key_file", path, file_context)
    try:
        read_key(key_file)
    except OSError as error:
        hint = f"make one: (umask 077; head -c 32 /dev/urandom | base64 >{key_file})"
        raise ConfigError(path, f"audit.chain_key_file: {key_file}: {error.strerror}", hint) from None
    return key_file


def _sign_key(file: ConfigFile, path: str, file_context: FileContext) -> str:
    """The absolute path of the key that signs checkpoints; empty if there is none. Raises ConfigError, UserError."""
    if file.audit.sign_key is None:
        return ""
    from ..audit.signing_keys import MAKE, read_signer

    key_file = _key_path(file.audit.sign_key, "audit.sign_key", path, file_context)
    try:
        read_signer(key_file)
    except OSError as error:
        hint = MAKE.format(path=key_file)
        raise ConfigError(path, f"audit.sign_key: {key_file}: {error.strerror}", hint) from None
    return key_file


def _key_path(text: str, key: str, path: str, file_context: FileContext) -> str:
    """The absolute path of a key's file. Raises ConfigError."""
    file = with_credentials_folder(text, path, key, file_context.environ)
    return file_context.find(file, os.path.dirname(path))


def _own_groups(file: ConfigFile, path: str, prefix: str, file_context: FileContext) -> Iterator[Group]:
    """The hooks in hookproxy's own format: those that decide, and those that are only watched."""
    from .models import OwnHooks, keys_set

    if file.hooks == OwnHooks():
        return
    from ..dialects.own import OWN, own_dialect, own_hook  # with Claude's, 15 modules: only for such hooks

    folder = os.path.dirname(path)
    hooks: dict[tuple[str, bool], tuple[Dialect, list[HookSpec]]]
    hooks = {(OWN.name, watched): (OWN, []) for watched in (False, True)}

    def read_file(written: str) -> tuple[str, str]:
        found = file_context.find(written, folder)
        return found, file_context.text(found, path)

    for event in OWN.events.values():
        for number, table in enumerate(getattr(file.hooks, event)):
            spec = own_hook(keys_set(table), event, f"{path}: {prefix}hooks.{event}[{number}]", folder, read_file)
            evaluated = file.hooks.composition.mode == "evaluate_only" and spec.dialect != OWN.name
            if table.mode == "evaluate_only" or (evaluated and table.mode is None):
                spec = _evaluated_only(spec)
            key = (spec.dialect, table.mode == "monitor")
            hooks.setdefault(key, (own_dialect(table.type or ""), []))[1].append(spec)
    composed = _composed(file, where := f"{path}: {prefix}hooks.composition", folder)
    if composed is not None and all(name != composed.name for name, _ in hooks):
        hooks[composed.name, False] = (composed, _no_hooks(file, composed.name, where))
    for (name, watched), (dialect, specs) in hooks.items():
        dialect_of_group = dialect if composed is None or name != composed.name else composed
        yield Group(dialect_of_group, path, tuple(specs), OWN.tool_names, match_all_names=True, watched=watched)


def _no_hooks(file: ConfigFile, dialect: str, where: str) -> list[HookSpec]:
    """What stands for the hooks that `[hooks.composition]` is about if there are none. Raises ConfigError."""
    if file.hooks.composition.mode != "evaluate_only":
        hint = 'remove it, or write type = "agent-hooks" in a hook'
        raise ConfigError(where, f'is about hooks of type "{dialect}", and there are none', hint)
    from ..dialects.agent_hooks_verdicts import absent  # nobody else does without hooks

    return [absent(event, where) for event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE)]


def _evaluated_only(spec: HookSpec) -> HookSpec:
    """The hook with `mode = "evaluate_only"`. Raises ConfigError for a hook of another type."""
    from ..dialects.own import OWN

    if spec.dialect == OWN.name:
        hint = 'write mode = "monitor"'
        raise ConfigError(f"{spec.source}.mode", 'is "evaluate_only" only for type = "agent-hooks"', hint)
    from ..dialects.agent_hooks_verdicts import evaluated_only  # nobody else's hooks need it

    return evaluated_only(spec)


def _composed(file: ConfigFile, where: str, folder: str) -> Dialect | None:
    """The system of hooks of type "agent-hooks" as `[hooks.composition]` has it; None: there is none. Raises
    ConfigError."""
    from .models import Resolver, keys_set

    table = keys_set(file.hooks.composition)
    if not table and file.hooks.composition.mode is None:
        return None
    if isinstance(resolver := file.hooks.composition.resolver, Resolver):
        table["resolver"] = keys_set(resolver)
    from .composition import composed  # nobody else's hooks need it

    return composed(table, where, folder)


def _interceptors(file: ConfigFile, path: str, prefix: str) -> list[Group]:
    """The servers of interceptors, as hooks. Raises ConfigError."""
    if not file.interceptors:
        return []
    from ..dialects.interceptors import interceptor_group  # few have some
    from .models import keys_set

    tables = [keys_set(interceptors) for interceptors in file.interceptors]
    return [interceptor_group(tables, path, f"{path}: {prefix}interceptors", os.path.dirname(path))]
