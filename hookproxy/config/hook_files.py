"""Finds the hook files of other systems that a `[[use]]` table or `--hooks` names, and reads their hooks.

Nothing is loaded only because it is in the working directory: a hook file is code, and a person must have named it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from ..dialects.dialect import Dialect, FolderContent, FoundFile, Group, HookFile, HookList
from ..dialects.registry import DIALECTS
from ..dialects.shared.handler_types import make_warm
from ..dialects.shared.hook_file import NO_HOOKS, read_document, suggestion
from ..model.errors import ConfigError, UserError
from ..model.hooks import HookSpec
from ..model.late_pattern import late_pattern
from ..model.model_endpoint import ModelEndpoint
from ..model.settings import AgentRule, OnFailure, SeenNames, ToolNames
from ..trust.sources import FileContext
from .unread_hooks import correction, problem_as, unread_hooks, unrecognised, with_owner

_GLOB_CHARACTERS: Final = frozenset("*?[")  # a path with one of them is a pattern, unless a file has that name

_GUARD_CLIENT: Final = late_pattern(r" -I -S -E [^\n]*/hookproxy/guard/client\.py'? ")
"""What every command line has that `guard install` writes."""

_SCRIPT_BYTES: Final = 65_536  # of a program, in which that line is looked for: a script of one line

NONE_CAN_RUN: Final = "none of its hooks can run here"
"""The end of a remark on a file that guards nothing."""


class Use(Struct, frozen=True):
    """The content of a `[[use]]` table, or of a `--hooks` option."""

    file: str
    """A file, a folder or a glob pattern, as written."""
    folder: str
    """The folder that a relative path starts from."""
    place: str
    """Where the file is named, for error messages."""
    dialect: Dialect | None
    """None: it is recognised from the file's content."""
    tool_names: ToolNames | None = None
    names: SeenNames = SeenNames.BOTH
    on_failure: OnFailure | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """The keys that only some dialects have."""
    warm_options: Mapping[str, object] = field(default_factory=dict)
    project: str = ""
    """The folder in which the hooks run, as written; empty: it follows from the file's place."""
    model: ModelEndpoint | None = None
    """The model of the configuration that names the file; None: it names none."""
    naming: str = "--hooks {dialect}={path}"
    """The option that names its dialect, for hints."""
    sees_values: bool = False
    """Its hooks see the values of hidden secrets."""


class LoadedHookFile(Struct, frozen=True):
    """The hooks of one hook file, and what is reported about it at start-up, as in `HookList`."""

    group: Group
    named_by: str
    """The file or the folder that a person has named, as an absolute path."""
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    rules: tuple[AgentRule, ...] = ()


def parse_option(item: str, cwd: str, option: str = "--hooks") -> Use:
    """Parse the value of `--hooks`: DIALECT=FILE, or FILE. Raises UserError."""
    name, equals, file = item.partition("=")
    if not equals or (name not in DIALECTS and ("/" in name or os.path.lexists(os.path.join(cwd, item)))):
        name, file = "", item  # the equals sign is part of the file's name
    place = f"{option} {item}"
    if not file:
        raise UserError(f"{place}: no file is named", f"{option} DIALECT=FILE, or {option} FILE")
    return Use(file, cwd, place, dialect_named(name, place) if name else None)


def absolute_option(item: str, cwd: str) -> str:
    """The value of `--hooks` that means the same in any folder. Raises UserError."""
    use = parse_option(item, cwd)
    path = os.path.normpath(os.path.join(cwd, use.file)) if use.file[:1] not in ("~", "/") else use.file
    return path if use.dialect is None else f"{use.dialect.name}={path}"


def dialect_named(name: str, place: str) -> Dialect:
    """The dialect of this name. Raises ConfigError if there is none."""
    if name in DIALECTS:
        return DIALECTS[name]
    hint = suggestion(name, DIALECTS) or f"expected one of: {', '.join(DIALECTS)}"
    raise ConfigError(place, f"there is no dialect {name!r}", hint)


def read_use(use: Use, file_context: FileContext) -> Iterator[LoadedHookFile]:
    """Read each hook file that `use` names. Raises ConfigError."""
    path = file_context.find(use.file, use.folder)
    name, equals, rest = use.file.partition("=")
    if equals and name in DIALECTS and not os.path.lexists(path):
        raise ConfigError(use.place, f"there is no file {path}", f'write dialect = "{name}" and file = "{rest}"')
    for dialect in (use.dialect,) if use.dialect else DIALECTS.values():
        content = dialect.read_folder(path, file_context) if os.path.isdir(path) else None
        if content:
            yield from _read_folder(content, path, dialect, use, file_context)
            return
    for file in _find_files(use, file_context):
        yield _read_file(FoundFile(file), file, use, file_context)


def _read_folder(
    content: FolderContent, path: str, dialect: Dialect, use: Use, file_context: FileContext
) -> Iterator[LoadedHookFile]:
    """Read the hook files of a folder that the dialect knows. An optional one that cannot be read gets a note.

    Raises ConfigError also if no file of the folder has hooks, and there is such a note.
    """
    known, tool_names = replace(use, dialect=dialect), use.tool_names or dialect.tool_names
    yield LoadedHookFile(Group(dialect, path, (), tool_names), path, content.notes, content.remarks)
    has_hooks, error = False, None
    for file in content.files:
        try:
            loaded = _read_file(file, path, known, file_context)
        except ConfigError as problem:
            if not file.optional:
                raise
            error, note = error or problem, f"{problem.message}: its hooks do not run: {problem.hint}"
            loaded = LoadedHookFile(Group(dialect, file.path, (), tool_names), path, (note,))
        has_hooks = has_hooks or bool(loaded.group.hooks or loaded.rules)
        yield loaded
    if error is not None and not has_hooks:
        raise error


def _read_file(file: FoundFile, named_by: str, use: Use, file_context: FileContext) -> LoadedHookFile:
    path = file.path
    dialect = use.dialect or _dialect_of_program(path)
    text = "" if dialect and dialect.executables else file_context.text(path, use.place)
    dialect = dialect or _recognise(path, text, use.naming)
    for option in use.options:
        if option not in dialect.options:
            raise ConfigError(
                f"{use.place}.{option}",
                f"is for {_dialects_with(option)} only, not for {dialect.name}",
                "remove it",
            )
    plugin = file.plugin or dialect.find_plugin(path, file_context)
    project = _project_folder(path, dialect, use, plugin is not None, file_context)
    hook_file = HookFile(path, text, project, use.options, file_context.environ, plugin, file_context.cwd, use.model)
    try:
        hook_list = dialect.read_hook_file(hook_file)
    except ConfigError as error:
        raise with_owner(error, dialect, hook_file) from None
    if unread := unread_hooks(dialect, hook_file, hook_list):
        raise unread
    hook_list, of_guard = _without_guard(hook_list, path)
    says_none = any(remark.endswith(NO_HOOKS) for remark in hook_list.remarks)
    no_hooks = () if hook_list.hooks or hook_list.rules or says_none else (f"{path}: {NONE_CAN_RUN}",)
    same_shape = () if use.dialect else _same_shape(path, dialect)
    tool_names = use.tool_names or dialect.tool_names
    hooks = make_warm(dialect, hook_list.hooks, use.place, use.warm_options)
    if use.sees_values:
        hooks = tuple(replace(hook, sees_values=True) for hook in hooks)
    named = project if use.project and not file_context.project else ""
    group = Group(dialect, path, hooks, tool_names, use.on_failure, plugin=plugin, names=use.names, project=named)
    remarks = (*hook_list.remarks, *of_guard, *no_hooks, *same_shape)
    return LoadedHookFile(group, named_by, hook_list.notes, remarks, hook_list.rules)


def _asks_guard(spec: HookSpec, path: str) -> bool:
    text = spec.shell or " ".join(spec.argv)
    if spec.argv == (path,):  # a program that is a hook file itself
        try:
            with open(path, "rb") as program:
                text = program.read(_SCRIPT_BYTES).decode(errors="replace")
        except OSError:  # it cannot be started either, which is reported then
            return False
    return _GUARD_CLIENT.search(text) is not None


def _without_guard(hook_list: HookList, path: str) -> tuple[HookList, tuple[str, ...]]:
    """The hooks without those that ask the guard, which would ask itself, and a sentence if there are any."""

    hooks = tuple(spec for spec in hook_list.hooks if not _asks_guard(spec, path))
    if len(hooks) == len(hook_list.hooks):
        return hook_list, ()
    return replace(hook_list, hooks=hooks), (f"{path}: entries of hookproxy guard install are left out",)


def _dialects_with(option: str) -> str:
    return ", ".join(name for name, dialect in DIALECTS.items() if option in dialect.options)


def _find_files(use: Use, file_context: FileContext) -> list[str]:
    """The named hook files, at least one. Those of a folder or a pattern are sorted by name."""
    path = file_context.find(use.file, use.folder)
    if os.path.isdir(path):
        suffixes = use.dialect.suffixes if use.dialect else (".json",)
        names = sorted(name for name in os.listdir(path) if name.endswith(suffixes) and not name.startswith("."))
        if not names:
            raise ConfigError(
                use.place,
                f"{path} contains no {' or '.join(suffixes) or 'hook'} file",
                "name a folder that contains hook files",
            )
        return [os.path.join(path, name) for name in names]
    if _GLOB_CHARACTERS.isdisjoint(use.file) or os.path.lexists(path):
        return [path]
    pattern, root = file_context.expand(use.file), use.folder
    from glob import glob

    matches = sorted(glob(pattern, root_dir=root, recursive=True))
    if not matches:
        raise ConfigError(use.place, f"no file matches {os.path.join(root, pattern)}", "name a hook file that exists")
    return [os.path.normpath(os.path.join(root, match)) for match in matches]


def _dialect_of_program(path: str) -> Dialect | None:
    """The dialect in whose folder for programs a file is, or whose modules have its suffix; None: it is a document."""
    for dialect in DIALECTS.values():
        if dialect.executables and _in_own_folder(path, dialect):
            return dialect
    return next((dialect for dialect in DIALECTS.values() if dialect.modules and path.endswith(dialect.suffixes)), None)


def _recognise(path: str, text: str, naming: str) -> Dialect:
    """The one dialect whose format the file has. Raises ConfigError if there is none, or more than one.

    In a folder that belongs to some systems, it is a file of one of these. `naming` is as in `Use`.
    """
    members = read_document(path, text, comments=True).members
    if path.endswith(".toml") and _is_own_format(path, members):
        hint = f"it is hookproxy's own configuration: --config {path}"
        raise ConfigError(path, "is not a hook file of another system", hint)
    file = HookFile(path, text, os.path.dirname(path))
    place = _place_of(path)
    name = os.path.basename(path)
    at_home = [dialect for dialect in DIALECTS.values() if _in_own_folder(place, dialect) or name in dialect.own_files]
    fitting = [
        dialect
        for dialect in DIALECTS.values()
        if (dialect in at_home or not dialect.shape_of) and _fits(dialect, members, dialect in at_home)
    ]
    fitting_here = [dialect for dialect in fitting if dialect in at_home]
    if fitting and at_home and not fitting_here:
        owners = " or ".join(dialect.name for dialect in at_home if "@" not in dialect.name)
        naming_it = f"name its dialect: {naming.format(dialect=fitting[0].name, path=path)}"
        hint = "; or ".join(filter(None, (correction(at_home[0], file), naming_it)))
        formats = " or ".join(dialect.name for dialect in fitting)
        in_folder = any(_in_own_folder(place, dialect) for dialect in at_home)
        why = "is in a folder" if in_folder else "has the name of a file"
        raise ConfigError(path, f"has the format of {formats}, but {why} of {owners}", hint)
    fitting = fitting_here or fitting
    if len(fitting) == 1:
        return fitting[0]
    likely = fitting[0].name if fitting else "claude"
    hint = f"name its dialect: {naming.format(dialect=likely, path=path)}"
    if "{path}" in naming:  # the file is named by an option, or by a table
        hint += f', or dialect = "{likely}" in [[use]]'
    if not fitting:
        if (owner := _owner_without_hooks(file, members, at_home)) is not None:
            return owner
        hint += f"; the dialects are: {', '.join(DIALECTS)}"
        raise ConfigError(path, "cannot tell which system this hook file is for", hint)
    names = " or ".join(dialect.name for dialect in fitting)
    raise ConfigError(path, f"could be a hook file of {names}: it fits each of these formats", hint)


def _owner_without_hooks(file: HookFile, members: Mapping[str, object], at_home: Sequence[Dialect]) -> Dialect | None:
    """The system in whose folder a file is that has nothing which looks like a hook: it says what is wrong with it.

    None: it is in nobody's folder. Raises ConfigError for a file that has hooks, and which no dialect recognises.
    """
    unread = unrecognised(file, members)
    if unread and at_home and (problem := problem_as(at_home[0], file)):
        raise problem
    if unread:
        raise unread
    return next((dialect for dialect in at_home if "@" not in dialect.name), None)


def is_own_configuration(path: str) -> bool:
    """Whether there is a hookproxy.toml at this path, whatever its name. A file that cannot be read is none.

    One with this name is one, whatever it contains: its errors are about our own keys.
    """
    if os.path.basename(path) == "hookproxy.toml":
        return True
    if not path.endswith(".toml"):
        return False
    try:
        with open(path, encoding="utf-8") as file:
            members = read_document(path, file.read()).members
    except (OSError, UnicodeError, ConfigError):
        return False
    return _is_own_format(path, members)


def _is_own_format(path: str, members: Mapping[str, object]) -> bool:
    """Whether a TOML file with these members is not a hook file of another system, and has only our keys."""
    from .models import ConfigFile

    readers = [reader for reader in DIALECTS.values() if ".toml" in reader.suffixes]
    at_home = [_in_own_folder(_place_of(path), reader) for reader in readers]
    fits_another = any(_fits(reader, members, is_home) for reader, is_home in zip(readers, at_home, strict=True))
    if fits_another or (any(at_home) and not members) or not isinstance(members.get("hooks", {}), dict):
        return False
    return members.keys() <= set(ConfigFile.__struct_encode_fields__)


def _place_of(path: str) -> str:
    """The path by whose folder a file is recognised: its own, else that of the file which it is a link to."""
    if any(_in_own_folder(path, dialect) for dialect in DIALECTS.values()):
        return path
    return os.path.realpath(path)


def _fits(dialect: Dialect, members: Mapping[str, object], at_home: bool) -> bool:
    """Whether a file with these members has the dialect's shape."""
    recognises = dialect.recognises_at_home if at_home and dialect.recognises_at_home else dialect.recognises
    return recognises(members)


def _in_own_folder(path: str, dialect: Dialect) -> bool:
    return any(fnmatchcase(os.path.dirname(path), f"*/{folder}") for folder in dialect.folders)


def _same_shape(path: str, dialect: Dialect) -> tuple[str, ...]:
    """A remark on a file that is read as one system's, although other systems have files of the same shape."""
    others = [other.name for other in DIALECTS.values() if other.shape_of == dialect.name]
    if not others or _in_own_folder(_place_of(path), dialect) or os.path.basename(path) in dialect.file_names:
        return ()
    one_of = " or ".join(filter(None, (", ".join(others[:-1]), others[-1])))
    return (f"{path}: read as a hook file of {dialect.name}; if it is one of {one_of}, name the dialect",)


def _project_folder(path: str, dialect: Dialect, use: Use, of_plugin: bool, file_context: FileContext) -> str:
    """The folder of the project in which the hooks of a file run. Relative commands start from there.

    It is the folder that a person names; else the one that the agent names; else the project whose folder for such
    files this one is in; else the folder in which hookproxy was started, as for the hooks of users and plugins.
    """
    if file_context.project:
        return file_context.project
    if use.project:
        folder = file_context.find(use.project, use.folder)
        if not os.path.isdir(folder):
            raise ConfigError(f"{use.place}.project", f"there is no folder {folder}", "name the project's folder")
        return folder
    given = file_context.environ.get("CLAUDE_PROJECT_DIR")
    if given and "CLAUDE_PROJECT_DIR" in dialect.variables:
        return os.path.join(file_context.cwd, given)
    folder = os.path.dirname(path)
    for inner in dialect.folders:
        if file_context.home and os.path.realpath(folder) == os.path.realpath(os.path.join(file_context.home, inner)):
            return file_context.cwd  # the user's own hooks are for the project that is being worked on
        if folder.endswith(f"/{inner}") and not of_plugin:
            return folder.removesuffix(f"/{inner}") or "/"
    return folder if file_context.managed else file_context.cwd
