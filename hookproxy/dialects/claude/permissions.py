"""Reads the `permissions` of Claude Code's settings files: rules that join those of hookproxy.toml.

Claude Code's permissions reference (code.claude.com/docs/en/permissions): deny beats ask beats allow. `Edit(path)` is
for all tools that edit files, `Read(path)` for all that read, and a denied `Read` is denied to those that edit and
write as well. Path rules with other tools' names are "accepted but never consulted". Patterns are those of gitignore:
`//path` starts from the root, `~/path` from the home folder, `/path` and `path` from the project.
"""

from __future__ import annotations

import os
import re
from typing import Final

from msgspec.structs import replace

from ...jsonrpc import locate
from ...model.late_pattern import late_pattern
from ...model.settings import AgentRule
from ...policy import matchers
from ..dialect import HookFile, HookList
from ..shared.hook_file import NO_HOOKS, Table

_READING: Final = ("Read", "Grep", "Glob", "LS")
_EDITING: Final = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_ONE_FILE: Final = {"Read": ("Read",), "Edit": ("Edit", "Write", "MultiEdit")}
"""The tools to which an allow rule about paths applies: those whose arguments name one file."""
_NEVER_CONSULTED: Final = {"Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit", "Glob": "Read", "LS": "Read"}
"""Tools whose path rules Claude Code never consults, and the one to write instead. A pattern of Grep is not a path."""

_PATH_RULE: Final = late_pattern(r"\s*(\w+)\((.*)\)\s*", re.DOTALL)
_WITHOUT_EFFECT: Final = ("additionalDirectories", "disableBypassPermissionsMode", "disableAutoMode")
"""Settings about folders and modes of the agent, of which an MCP server knows nothing."""


def add_rules(found: HookList, file: HookFile, settings: Table) -> HookList:
    """The hooks with the file's permission rules, if `[[use]]` says so; else with a remark."""
    if not settings.members.get("permissions"):
        return found
    if file.options.get("permissions") is not True:
        remark = f"{file.path}: its permissions are not applied: set permissions = true in [[use]]"
        return replace(found, remarks=(*found.remarks, remark))
    rules, notes, remarks = _read(file, settings.table("permissions"))
    no_hooks = f"{file.path}: {NO_HOOKS}"  # no remark on a file that somebody names because of its rules
    remarks = [remark for remark in found.remarks if not rules or remark != no_hooks] + remarks
    return replace(found, rules=rules, notes=(*found.notes, *notes), remarks=tuple(remarks))


def _read(file: HookFile, table: Table) -> tuple[tuple[AgentRule, ...], list[str], list[str]]:
    """The rules, notes on what is not applied, and remarks on what has no meaning here."""
    rules, notes = list[AgentRule](), list[str]()
    lines = locate.read(file.path, file.text)
    for decision in ("deny", "ask", "allow"):
        texts = table.members.get(decision, [])
        for number, text in enumerate(texts if isinstance(texts, list) else [texts]):
            key = f"{table.place(decision)}[{number}]"
            if problem := _problem(decision, text):
                notes.append(f"{file.path}: {key} {text!r} is not applied: {problem}")
                continue
            location = lines.find(key)
            place = f"{file.path}:{location.line}" if location else f"{file.path}: {key}"
            rule = _rule(file, AgentRule(decision, text, place))
            path_rule = _PATH_RULE.fullmatch(text)
            if path_rule and path_rule[1] in _NEVER_CONSULTED:
                notes.append(_never_consulted(file, key, rule, path_rule[1]))
            if rule.names or not rule.path:
                rules.append(rule)
    mode = table.text("defaultMode", "default")
    if mode not in ("default", "manual"):
        notes.append(f"{file.path}: {table.place('defaultMode')} {mode!r} is not applied: only rules decide, and hooks")
    unused = [table.place(key) for key in _WITHOUT_EFFECT if key in table.members]
    remarks = [f"{file.path}: {key} has no effect behind MCP" for key in unused]
    return tuple(rules), notes, remarks


def _problem(decision: str, text: object) -> str:
    """Why a rule cannot be applied; empty if it can."""
    from ...policy import rules  # 5 ms, only for files with rules

    if not isinstance(text, str):
        return "it is not a text"
    path_rule = _PATH_RULE.fullmatch(text)
    if path_rule and path_rule[1] in (*_READING, *_EDITING) and path_rule[2].lstrip().startswith("!"):
        return "a pattern that begins with ! is not supported"
    try:
        rules.parsed(text)
        if decision == "allow":
            matchers.allow_rule(text)
    except (re.error, ValueError, OverflowError, RecursionError) as problem:
        return str(problem)
    return ""


def _never_consulted(file: HookFile, key: str, rule: AgentRule, tool: str) -> str:
    """A note on a path rule that Claude Code does not consult. Denying what it names is what its author wanted."""
    follows = "is not applied" if rule.decision == "allow" else f"is applied to {tool} alone"
    better = _NEVER_CONSULTED[tool]
    return f"{file.path}: {key} {rule.text!r} {follows}: Claude Code never consults it; write {better}(…)"


def _rule(file: HookFile, rule: AgentRule) -> AgentRule:
    """The rule; if it is about paths, with the tools that it is about, and the folder that its pattern starts from."""
    path_rule = _PATH_RULE.fullmatch(rule.text)
    tool, pattern = (path_rule[1], path_rule[2].strip()) if path_rule else ("", "")
    if tool not in (*_READING, *_EDITING) or tool == "Grep" or pattern in ("", "*"):
        return rule
    if rule.decision == "allow":
        names = _ONE_FILE.get(tool, ())
    elif tool == "Read":
        denied = ("Edit", "Write", "MultiEdit") if rule.decision == "deny" else ()
        names = (*_READING, *denied)
    else:
        names = _EDITING if tool == "Edit" else (tool,)
    home = file.environ.get("HOME", "")
    if pattern.startswith("//"):
        base, pattern = "/", pattern[1:]
    elif pattern.startswith("~/"):
        base, pattern = home or "/", pattern[1:]
    else:
        base = file.project_dir
    bases = tuple(dict.fromkeys((base, os.path.realpath(base))))  # calls may have either
    return replace(rule, names=names, path=pattern, bases=bases, folders=(file.project_dir, file.cwd), home=home)
