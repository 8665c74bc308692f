"""Qwen Code's hooks: Claude Code's names and output, run as Gemini CLI runs its hooks."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.aliases import ToolSpelling
from ..model.hooks import Document, Event, EventContext, HookResult, HookSpec, Order, Outcome, Permission, Verdict
from ..policy import matchers
from .agent_documents import DocumentSigns, Members
from .agent_side import AgentSide, Can, DocumentForm, milliseconds, result_outcome, session_of, text_outcome
from .dialect import Dialect, Effect, HookFile, HookList, UserFiles, for_names
from .shared import claude_agent_side, claude_matchers, command_file, handler_types, labels, model_hooks
from .shared import claude_envelope as envelope
from .shared import hook_file as shared_hook_file
from .shared import input as shared_input
from .shared import output as shared_output
from .shared.command_file import CommandFile, Entries, Matchers, Timeouts
from .shared.events import INSIDE_AGENT, PROMPTS_UNSEEN, by_name
from .shared.handler_types import Handler
from .shared.hook_file import Table
from .shared.llm_outcome import llm_outcome
from .shared.output import BLOCKS

PROJECT_VARIABLES: Final = ("QWEN_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")

_HTTP_TIMEOUT: Final = 600.0
"""Seconds for HTTP hooks."""

_MILLISECONDS: Final = 1000.0
"""A timeout of this or more is in milliseconds: older versions knew no other unit, and newer ones read it so."""

_CALL_EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
    Event.PERMISSION_DENIED,
)
FAMILIAR_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "Bash": ("run_shell_command", {"run_in_background": "is_background"}),
    "Read": ("read_file", {}),
    "Write": ("write_file", {}),
    "Edit": ("edit", {}),
    "LS": ("list_directory", {}),
    "Glob": ("glob", {}),
    "Grep": ("grep_search", {}),
    "WebFetch": ("web_fetch", {}),
    "WebSearch": ("web_search", {}),
}
"""Qwen Code's own tools, with their names of arguments that Claude Code spells otherwise, by Claude Code's names."""

_ALIASES: Final = {
    "run_shell_command": ("Bash", "Shell"),
    "read_file": ("Read", "ReadFile"),
    "write_file": ("Write", "WriteFile"),
    "edit": ("Edit",),
    "list_directory": ("LS", "ListFiles"),
    "glob": ("Glob",),
    "grep_search": ("Grep",),
    "web_fetch": ("WebFetch",),
    "web_search": ("WebSearch",),
}
"""Other names by which matchers know these tools: Claude Code's and the displayed ones."""

_KEYS: Final = (
    "type", "command", "args", "if", "name", "timeout", "async", "env", "shell", "statusMessage", "failMode", "url",
    "headers", "allowedEnvVars", "description", *model_hooks.KEYS,
)  # fmt: skip


_REPLACED: Final = re.compile(r"[^A-Za-z0-9_.-]")
"""What a name cannot have. Whether it can have dots is not known: matchers are tried on both spellings."""


def mcp_tool_name(server: str, tool: str) -> str:
    """`mcp__SERVER__TOOL`, with dots."""
    return f"mcp__{_REPLACED.sub('_', server)}__{_REPLACED.sub('_', tool)}"


def _read_hook_file(file: HookFile) -> HookList:
    settings = shared_hook_file.read_document(file.path, file.text, comments=True)
    if settings.flag("disableAllHooks"):
        return HookList((), remarks=(f"{file.path}: disableAllHooks is true, {shared_hook_file.SWITCHED_OFF}",))
    return FORMAT.read_hooks(file, settings)


def _matcher(pattern: str) -> Callable[[str], bool]:
    """As `_matcher_of_name`, for the name of a server's tool with its dots or with `_` in their place."""
    return claude_matchers.either_spelling(_matcher_of_name(pattern))


def _matcher_of_name(pattern: str) -> Callable[[str], bool]:
    """All; a name, or a list of names, of the tool or of its other names; else an expression that matches anywhere.

    What newer versions and older ones match differently, either of them matches here. An invalid expression matches
    only as a name.
    """
    pattern = pattern.strip()
    if pattern in ("", "*", ".*"):
        return lambda _name: True
    listed = frozenset([pattern] if pattern.startswith(("^", "(")) else map(str.strip, (pattern, *pattern.split("|"))))
    try:
        expression = matchers.javascript_regex("|".join(map(str.strip, pattern.split("|"))))
    except (re.error, OverflowError, RecursionError) as problem:
        if isinstance(problem, re.error) and matchers.is_no_expression(problem):
            return lambda name: not listed.isdisjoint((name, *_ALIASES.get(name, ())))
        raise  # Qwen Code may be able to read it, so it is not known what it means
    return lambda name: not listed.isdisjoint((name, *_ALIASES.get(name, ()))) or expression(name)


def _matcher_notes(event: Event, pattern: str, matches: Callable[[str], bool]) -> list[str]:
    try:
        matchers.javascript_regex(pattern.strip())
    except re.error as problem:
        if pattern.strip() not in ("", "*"):
            return [f"is not a regular expression ({problem.msg}), so it only matches a tool of just this name"]
    return claude_matchers.never_matches(event, pattern, matches)


def _read_handler(file: HookFile, name: str, entry: Table) -> Handler | str:
    handler = entry.choice("type", ("command", "http", "prompt", "function"), "command")
    if handler == "prompt":
        return model_hooks.read_model_hook(file, entry, FORMAT.events[name], handler, takes_context=True)
    if handler == "function":
        raise entry.error("type", f"{handler!r} is not supported: it runs inside Qwen Code", "use type command")
    if handler == "http":
        return handler_types.read_http(entry, "allowedEnvVars")
    if (args := entry.texts("args")) is not None:
        return _read_program(file, entry, args)
    if entry.choice("shell", ("bash", "powershell"), "bash") == "powershell":
        raise entry.error("shell", "is PowerShell, which is not supported", "write a command for bash")
    return command_file.read_command(entry)


def _read_program(file: HookFile, entry: Table, args: tuple[str, ...]) -> Handler:
    """The handler of an entry with `args`: a program that no shell starts, with these arguments as they are written.

    `shell` is ignored. Raises ConfigError.
    """
    handler = command_file.read_command(entry)
    argv = (handler.shell, *args)
    return replace(
        handler,
        label=labels.argv_label(list(argv)),
        shell="",
        argv=shared_hook_file.resolve_program(argv, file.project_dir),
    )


def _own_rule(rule: str) -> str:
    """The rule of an `if` with Qwen Code's own name of its tool: hooks see calls under that name.

    Its page does not say which names a rule may have: as in matchers, they are those that it knows.
    """
    name, bracket, rest = rule.strip().partition("(")
    return next((tool for tool, names in _ALIASES.items() if name in names), name) + bracket + rest


def _finish(file: HookFile, entry: Table, hook: HookSpec) -> HookSpec:
    if "if" in entry.members:
        if hook.event not in _CALL_EVENTS:
            raise entry.error("if", f"is only for events of calls, and {hook.event_name} has none", "remove it")
        shared_hook_file.compile_member(entry, "if", matchers.permission_rule)
    timeout = hook.timeout
    if hook.url and "timeout" not in entry.members and hook.event is not Event.SESSION_END:
        timeout = _HTTP_TIMEOUT
    project = ((name, file.project_dir) for name in PROJECT_VARIABLES)
    return replace(
        hook,
        label=labels.command_label(entry.text("name")) or hook.label,
        timeout=timeout,
        background=entry.flag("async"),
        fails_closed=entry.choice("failMode", ("open", "closed"), "open") == "closed",
        env=(*project, *entry.pairs("env")) if hook.argv else (),
        only_if=_own_rule(entry.text("if")),
    )


FORMAT: Final = CommandFile(
    dialect="qwen",
    events=by_name(*_CALL_EVENTS, Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
    unavailable=for_names(
        {
            "an MCP server does not see which calls were made together": "PostToolBatch",
            PROMPTS_UNSEEN: "UserPromptSubmit UserPromptExpansion QueryEnd",
            "an MCP server does not see turns, tasks and subagents": (
                "Stop StopFailure SubagentStart SubagentStop TodoCreated TodoCompleted TeammateIdle"
            ),
            INSIDE_AGENT: (
                "PreCompact PostCompact SessionDelete MessageDisplay InstructionsLoaded ConfigChange CwdChanged"
                " FileChanged WorktreeCreate"
            ),
        }
    ),
    timeouts=Timeouts(default=60.0, milliseconds_from=_MILLISECONDS),
    entries=Entries(
        keys=_KEYS,
        grouped=True,
        sequential=True,
        read_handler=_read_handler,
        bash=True,
        finish=_finish,
        typed=True,
        closed=("failMode", "closed"),
        condition="if",
    ),
    matchers=Matchers(
        compile=_matcher,
        triggers=(Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
        notes=_matcher_notes,
        write="|".join,
    ),
)


_DIGITS: Final = string.digits + string.ascii_lowercase
_SUFFIX_LENGTH: Final = 9  # as in Qwen Code


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and the variables."""
    session = context.session
    document: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",  # required, and an MCP server has none
        "cwd": shared_input.utf8(session.cwd),
        "hook_event_name": context.event,
        "timestamp": shared_input.iso_8601(context.at),
        "permission_mode": "default",
    }
    document |= _call(context) if context.event in _CALL_EVENTS else shared_input.session_event(context)
    env = dict.fromkeys(PROJECT_VARIABLES, session.project_dir)
    return Document(shared_input.json_line(document), env)


def _call(context: EventContext) -> dict[str, object]:
    outcome = context.outcome or Outcome()
    members: dict[str, object] = {
        "tool_name": shared_input.utf8(context.tool_name),
        "tool_input": msgspec.Raw(context.arguments),
    }
    if context.event is Event.POST_TOOL_USE:
        text = shared_input.utf8(shared_input.result_text(outcome))
        members["tool_response"] = {"llmContent": [{"text": text}], "returnDisplay": text}
    if context.event is not Event.PERMISSION_REQUEST:
        members |= {"tool_use_id": _tool_use_id(context), "tool_call_id": shared_input.utf8(context.tool_use_id)}
    if context.event is Event.POST_TOOL_USE_FAILURE:
        members |= {"error": shared_input.utf8(outcome.error), "is_interrupt": outcome.interrupted}
    if context.event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        members["duration_ms"] = outcome.duration_ms
    if context.event is Event.PERMISSION_DENIED:
        members["reason"] = shared_input.utf8(context.message)
    return members


def _tool_use_id(context: EventContext) -> str:
    """An id of the form of `generateToolUseId`: the time of the call, and what distinguishes it from calls at the same
    time. All events of a call have the same."""
    call = f"{context.session.id}\0{context.tool_use_id}".encode(errors="replace")
    number = int.from_bytes(hashlib.sha256(call).digest(), "big")
    suffix = "".join(_DIGITS[number // len(_DIGITS) ** place % len(_DIGITS)] for place in range(_SUFFIX_LENGTH))
    return f"toolu_{int(context.at * 1000)}_{suffix}"


TOOL_INPUT_IGNORED: Final = (
    "gave hookSpecificOutput.tool_input, which is not read: to rewrite arguments, give hookSpecificOutput.updatedInput"
)
"""Qwen Code shows these arguments to the next hook of a sequence, and calls the tool with others: a guard would judge
what does not happen."""

_NO_REASON: Final = "No reason provided"
"""Qwen Code's own (`getEffectiveReason`)."""


def _output_text(code: int, stdout: str, stderr: str) -> str:
    """The stream that Qwen Code reads; if that one is empty, the other.

    With exit code 2, newer versions read standard error alone, and whether they block if it is empty is in doubt. The
    examples of the page print the reason on standard output: it is read.
    """
    text = stderr or stdout if code == BLOCKS else stdout or stderr
    if text.startswith('"') and (inner := raw_json.text(text.encode())):  # JSON as a JSON string
        return inner.strip()
    return text


_RULES: Final = envelope.Rules(output_text=_output_text, any_exit_code=True, shows_text=True)


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a hook run."""
    verdict = envelope.read_output(_RULES, spec, result)
    if verdict.stop and spec.event is Event.POST_TOOL_USE:
        verdict = _without_result(verdict, result)
    if b'"tool_input"' in result.stdout + result.stderr and "tool_input" in _members(result, "hookSpecificOutput"):
        return replace(verdict, messages=(*verdict.messages, TOOL_INPUT_IGNORED))
    return verdict


def _without_result(verdict: Verdict, result: HookResult) -> Verdict:
    """A hook that stops the agent after a call puts its reason in the place of the result and of all feedback."""
    members = _members(result)
    texts = (raw_json.text(members[name]) for name in ("stopReason", "reason") if name in members)
    reason = shared_output.truncate(next(filter(None, texts), _NO_REASON))
    return replace(verdict, permission=Permission.DENY, reason=reason, replacement=raw_json.encode(reason), feedback=())


def _members(result: HookResult, name: str = "") -> dict[str, bytes]:
    """The members of what a hook printed, or of its member of this name; none if they cannot be read."""
    text = _output_text(result.code, shared_output.decode(result.stdout), shared_output.decode(result.stderr))
    try:
        members = raw_json.fields(text.encode())
        members = raw_json.fields(bytes(members.get(name, b""))) if name else members
    except (raw_json.Unreadable, raw_json.DuplicateKeys):  # the verdict is about that
        return {}
    return {key: bytes(value) for key, value in members.items()}


DIALECT: Final = Dialect(
    files=FORMAT,
    described_by="the source of Qwen Code, packages/core/src/hooks, and its pages on hooks, as of autumn 2026, with "
    "those of 1.x",
    output_fields={**envelope.FIELDS, "hookSpecificOutput.tool_input": Effect.NONE},
    order=Order.TOGETHER,
    read_hook_file=_read_hook_file,
    write_input=write_input,
    read_output=read_output,
    hook_identity=lambda spec: (spec.label, *spec.identity),
    mcp_tool_name=mcp_tool_name,
    tool_spellings={known: (ToolSpelling(name, arguments),) for known, (name, arguments) in FAMILIAR_TOOLS.items()},
    recognises=lambda members: "version" not in members and FORMAT.fits(members, or_none=True),
    shape_of="claude",
    folders=(".qwen",),
    agents=("qwen-cli-mcp-client*",),
    constant_environment=True,
    variables=PROJECT_VARIABLES,
    user_files=(UserFiles(".qwen", "settings.json"),),
    project_files=(".qwen/settings.json",),
)


def _outcome(members: Members, failed: bool) -> Outcome:
    duration, response = milliseconds(members.raw("duration_ms")), members.object("tool_response")
    if failed:
        return text_outcome(members.text("error") or "the tool failed", failed=True, duration_ms=duration)
    if "llmContent" in response:
        return llm_outcome(response, duration)
    return result_outcome(members.raw("tool_response", b'""'), duration_ms=duration)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("timestamp", "permission_mode")),
    form=DocumentForm(session=partial(session_of, project_variable="QWEN_PROJECT_DIR"), outcome=_outcome),
    file=".qwen/settings.json",
    can=Can.ALLOW | Can.ASK | Can.TELL_BEFORE | Can.TELL_AFTER,
    write_output=partial(claude_agent_side.write_output, replacement=""),
)
