"""Finds and reads hookproxy.toml and the hook files that it or the command line names; gives groups of hooks.

Nothing is loaded because it lies in the working directory: a hook file is code, and must have been named.
What has been named and cannot be read is an error (law 3).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from .dialects import DIALECTS
from .dialects.base import Dialect, Group, HookFile
from .dialects.hookfile import located, read_document, suggestion
from .dialects.kinds import warmed
from .dialects.own import OWN, own_hook
from .errors import ConfigError, UserError
from .settings import OnTrouble, Settings, ToolNames

if TYPE_CHECKING:
    from .config_models import ConfigFile

_PATTERN: Final = frozenset("*?[")  # what makes a path a glob pattern, unless a file is named so


class Loaded(Struct, frozen=True):
    """All that is configured: the groups in the order in which they are asked, and what start-up says."""

    settings: Settings
    groups: tuple[Group, ...]
    notes: tuple[str, ...]
    path: str = ""
    """Our own file that was read; empty: none."""


class _Surroundings(Struct, frozen=True):
    environ: Mapping[str, str]
    cwd: str

    @property
    def home(self) -> str:
        """Empty where there is none."""
        home = self.environ.get("HOME") or os.path.expanduser("~")
        return home if os.path.isabs(home) else ""

    def expand(self, path: str) -> str:
        """`~` at the start as the home folder."""
        first, slash, rest = path.partition("/")
        return self.home + slash + rest if first == "~" and self.home else path

    def find(self, path: str, folder: str) -> str:
        """The absolute path of what `folder` calls `path`."""
        return os.path.normpath(os.path.join(folder, self.expand(path)))


class _Use(Struct, frozen=True):
    """A `[[use]]` table, or what `--hooks` is short for."""

    file: str
    """A file, a folder or a pattern, as written."""
    folder: str
    """Where a relative one starts from."""
    place: str
    """Who names it, for errors."""
    dialect: Dialect | None
    """None: seen from the file's shape."""
    tool_names: ToolNames | None = None
    on_trouble: OnTrouble | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """The keys that only some dialects have."""
    warmth: Mapping[str, object] = field(default_factory=dict)


_Read = tuple[Group, tuple[str, ...]]  # a hook file's hooks, and what start-up should say about it


def load(config: str | None, hooks: Sequence[str], audit: str | None, environ: Mapping[str, str], cwd: str) -> Loaded:
    """Read all that `--config`, `--hooks` and `--audit` name; without `--config` the user's own file, if any.

    The groups stand in this order: `[[use]]` as in the file, the file's own `[[hooks.EVENT]]`, `--hooks` as
    on the command line. Raises ConfigError or UserError for whatever cannot be read or understood.
    """
    around = _Surroundings(environ, cwd)
    path = _users_own(around) if config is None else around.find(config, cwd)
    settings, read = _read_config(path, around) if path else (Settings(), [])
    if audit is not None:
        settings = replace(settings, audit_file=_audit_file(audit, cwd, around))
    if settings.audit_required and not settings.audit_file:
        raise ConfigError(path, "audit.required is true, but no file is named", "set audit.file, or use --audit FILE")
    for item in hooks:
        read.extend(_read_use(_short_form(item, cwd), around))
    return Loaded(
        settings,
        groups=tuple(group for group, _ in read if group.hooks),
        notes=tuple(note for _, notes in read for note in notes),
        path=path,
    )


def _users_own(around: _Surroundings) -> str:
    """The path of the user's own hookproxy.toml; empty where there is none."""
    folder = around.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # a relative one is to be ignored, says the XDG specification
        if not around.home:
            return ""
        folder = os.path.join(around.home, ".config")
    path = os.path.join(folder, "hookproxy", "hookproxy.toml")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        pass  # it may be there: reading it will say what is wrong
    return path


def _read_config(path: str, around: _Surroundings) -> tuple[Settings, list[_Read]]:
    from .config_models import DIALECT_OPTIONS, WARMTH, parse  # pydantic: 40 ms, for those who have this file only
    from .config_patterns import check_patterns

    file = parse(path, _text(path))
    folder = os.path.dirname(path)
    read: list[_Read] = []
    for number, table in enumerate(file.use):
        where = f"{path}: use[{number}]"
        dialect = _dialect(table.dialect, where) if table.dialect is not None else None
        options = table.model_dump(include=DIALECT_OPTIONS, exclude_unset=True)
        warmth = table.model_dump(include=WARMTH, exclude_unset=True)
        use = _Use(table.file, folder, where, dialect, table.tool_names, table.on_trouble, options, warmth)
        read.extend(_read_use(use, around))
    read.append((_own_group(file, path), ()))
    check_patterns(file, path)
    return _settings(file, path, around), read


def _settings(file: ConfigFile, path: str, around: _Surroundings) -> Settings:
    from . import config_tools

    folder = os.path.dirname(path)
    return Settings(
        on_trouble=file.on_trouble,
        on_ask=file.on_ask,
        on_ask_fallback=OnTrouble.ALLOW if file.on_ask_fallback == "allow" else OnTrouble.DENY,
        prompter=_prompter(file, folder),
        feedback=file.feedback,
        max_message_bytes=file.max_message_bytes,
        audit_file=_audit_file(file.audit.file, folder, around),
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
        aliases=config_tools.aliases(file, path),
        limits=config_tools.limits(file, path),
    )


def _audit_file(file: str | None, folder: str, around: _Surroundings) -> str:
    """With a slash at its end, it stays a folder that may not be there yet."""
    return (around.find(file, folder) + "/" * file.endswith("/")) if file else ""


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
        for number, table in enumerate(file.hooks.of(event))
    ]
    return Group(OWN, path, tuple(hooks), OWN.tool_names, match_all_names=True)


def _short_form(item: str, cwd: str) -> _Use:
    """What `--hooks DIALECT=FILE` or `--hooks FILE` asks for."""
    name, equals, file = item.partition("=")
    if not equals or (name not in DIALECTS and ("/" in name or os.path.lexists(os.path.join(cwd, item)))):
        name, file = "", item  # an equals sign in the file's own name
    place = f"--hooks {item}"
    if not file:
        raise UserError(f"{place}: no file is named", "--hooks DIALECT=FILE, or --hooks FILE")
    return _Use(file, cwd, place, _dialect(name, place) if name else None)


def _dialect(name: str, place: str) -> Dialect:
    if name in DIALECTS:
        return DIALECTS[name]
    hint = suggestion(name, DIALECTS) or f"known: {', '.join(DIALECTS)}"
    raise ConfigError(place, f"there is no dialect {name!r}", hint)


def _read_use(use: _Use, around: _Surroundings) -> Iterator[_Read]:
    for path in _files(use, around):
        text = _text(path, use.place)
        dialect = use.dialect or _recognised(path, text)
        for option in use.options:
            if option not in dialect.options:
                raise ConfigError(f"{use.place}.{option}", f"is for {_takers(option)} only, not for {dialect.name}")
        project = _project_dir(path, dialect, around)
        found = dialect.read_hooks(HookFile(path, text, project, use.options, around.environ))
        nothing = () if found.hooks else (f"{path}: no hook in it can fire here",)
        tool_names = use.tool_names or dialect.tool_names
        hooks = warmed(dialect, found.hooks, use.place, use.warmth)
        yield Group(dialect, path, hooks, tool_names, use.on_trouble), (*found.notes, *nothing)


def _takers(option: str) -> str:
    return ", ".join(name for name, dialect in DIALECTS.items() if option in dialect.options)


def _files(use: _Use, around: _Surroundings) -> list[str]:
    """The hook files that are asked for, at least one; those of a folder or pattern by name."""
    path = around.find(use.file, use.folder)
    if os.path.isdir(path):
        endings = use.dialect.suffixes if use.dialect else (".json",)
        found = sorted(name for name in os.listdir(path) if name.endswith(endings) and not name.startswith("."))
        if not found:
            raise ConfigError(
                use.place, f"{path} holds no {' or '.join(endings)} file", "name a folder that holds hook files"
            )
        return [os.path.join(path, name) for name in found]
    if _PATTERN.isdisjoint(use.file) or os.path.lexists(path):
        return [path]
    pattern, root = around.expand(use.file), use.folder
    from glob import glob

    matches = sorted(glob(pattern, root_dir=root, recursive=True))
    if not matches:
        raise ConfigError(use.place, f"no file matches {os.path.join(root, pattern)}", "name a hook file that exists")
    return [os.path.normpath(os.path.join(root, match)) for match in matches]


def _recognised(path: str, text: str) -> Dialect:
    """The one dialect whose shape the file has. Raises ConfigError where there is none, or more than one."""
    members = read_document(path, text).members
    fitting = [dialect for dialect in DIALECTS.values() if dialect.fits(members)]
    if len(fitting) == 1:
        return fitting[0]
    hint = 'name its dialect: --hooks DIALECT=FILE, or dialect = "…" in [[use]]'
    if not fitting:
        raise ConfigError(path, "cannot tell whose hook file this is", hint)
    names = " and ".join(dialect.name for dialect in fitting)
    raise ConfigError(path, f"may be a hook file of {names}: its shape fits both", hint)


def _project_dir(path: str, dialect: Dialect, around: _Surroundings) -> str:
    """What relative commands of a hook file start from: the project it belongs to."""
    given = around.environ.get("CLAUDE_PROJECT_DIR")
    if given and "CLAUDE_PROJECT_DIR" in dialect.variables:
        return os.path.join(around.cwd, given)
    folder = os.path.dirname(path)
    for inner in dialect.folders:
        if around.home and os.path.realpath(folder) == os.path.realpath(os.path.join(around.home, inner)):
            return around.cwd  # the user's own hooks are for whatever project is being worked on
        if folder.endswith(f"/{inner}"):
            return folder.removesuffix(f"/{inner}") or "/"
    return folder


def _text(path: str, named_by: str = "") -> str:
    """The file's text. Raises ConfigError, which says who named the file."""
    hint = f"{named_by} names it" if named_by else ""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except FileNotFoundError:
        raise ConfigError(path, "there is no such file", hint) from None
    except IsADirectoryError:
        raise ConfigError(path, "is a folder, not a file", hint) from None
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", hint) from None
    except ValueError:
        raise ConfigError(repr(path), "is not a path: a NUL character is in it", hint) from None
    try:
        return raw.decode("utf-8-sig")  # with or without the mark that some editors put first
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}", "is not UTF-8", "save it as UTF-8") from None
