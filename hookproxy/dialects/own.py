"""hookproxy's own hooks: flat `[[hooks.EVENT]]` tables of hookproxy.toml, with Claude Code's input and output."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from ..model.errors import ConfigError
from ..model.flow import Label
from ..model.hooks import Document, Event, EventContext, HookResult, HookSpec, Verdict
from ..model.settings import OnFailure, ToolNames
from ..policy import matchers
from .claude import DIALECT as CLAUDE
from .claude import input as claude_input
from .claude import output as claude_output
from .claude.input import TOOL_EVENTS
from .dialect import Dialect, Effect
from .shared import handler_types, policy_input
from .shared import hook_file as shared_hook_file
from .shared import output as shared_output
from .shared.handler_types import Handler, ReadPolicyFile
from .shared.hook_file import Table
from .shared.input import iso_8601

KEYS: Final = ("matcher", *handler_types.KEYS, "timeout", "on_failure", "name", "env", "async", "if", "secrets")
"""Every key of a `[[hooks.EVENT]]` table."""

_POLICY_TIMEOUT: Final = 5.0  # seconds: policies compute, and one that takes longer holds up those that wait for it

_WITHOUT_VARIABLES: Final = ("python", "http", *policy_input.TYPES)
"""Types whose hooks are not programs of their own."""


def own_hook(
    table: Mapping[str, object],
    event: Event,
    where: str,
    folder: str,
    read_file: ReadPolicyFile = handler_types.no_policy_files,
) -> HookSpec:
    """The hook of one `[[hooks.EVENT]]` table. `where` names file and table. Commands start in `folder`.

    If it fails, the call is denied or the result withheld, because such a hook is meant to guard.
    Raises ConfigError.
    """
    entry = Table(where, "", table)
    for key in entry.members:
        if key not in KEYS:
            hint = shared_hook_file.suggestion(key, KEYS) or f"the keys are {', '.join(KEYS)}"
            raise ConfigError(where, f"unknown key {key!r}", hint)
    handler = handler_types.read_handler(entry, folder, read_file)
    dialect = own_dialect(entry.text("type"))
    if dialect is not OWN:
        _check_events(entry, dialect, event)
    if handler.type in policy_input.TYPES:
        _check_policy(entry, event, handler.type)
    if "env" in entry.members and handler.type in _WITHOUT_VARIABLES:
        raise entry.error(
            "env", f"is not for a hook of type {handler.type!r}", "only programs have environment variables"
        )
    if "if" in entry.members:
        shared_hook_file.compile_member(entry, "if", matchers.permission_rule)
        if event not in TOOL_EVENTS:
            raise entry.error("if", f"is for tool events: with it, a {event} hook would never run", "remove if")
    matches = shared_hook_file.compile_member(entry, "matcher", matchers.claude_matcher)
    on_failure = entry.choice("on_failure", tuple(OnFailure), OnFailure.DIALECT)
    return HookSpec(
        dialect=dialect.name,
        source=where,
        event=event,
        label=entry.text("name") or handler.label,
        matcher=entry.text("matcher"),
        matches=matches,
        argv=handler.argv,
        shell=handler.shell,
        cwd=folder,
        env=tuple((key, entry.table("env").text(key)) for key in entry.table("env").members),
        timeout=_timeout(
            entry, event, _POLICY_TIMEOUT if handler.type in policy_input.TYPES else dialect.default_timeout
        ),
        background=entry.flag("async"),
        fails_closed=True,
        withholds=True,
        on_failure=_on_failure(entry, handler, on_failure),
        only_if=entry.text("if"),
        type=handler.type,
        call=handler.call,
        url=handler.http_target.url,
        headers=handler.http_target.headers,
        allowed_env_vars=handler.http_target.allowed_env_vars,
        expression=handler.expression,
        policy=handler.policy,
        policy_file=handler.policy_file,
        policy_schema=handler.policy_schema,
        deny_reason=handler.deny_reason,
        sees_values=entry.choice("secrets", ("placeholders", "values"), "placeholders") == "values",
        concurrent=handler.concurrent,
        warm_max_age=handler.warm_max_age,
        warm_spares=handler.warm_spares,
    )


def own_dialect(handler_type: str) -> Dialect:
    """The input and output of our own hooks of this type."""
    if handler_type != handler_types.AGENT_HOOKS:
        return OWN
    from .agent_hooks import AGENT_HOOKS  # nobody else's hooks need it

    return AGENT_HOOKS


def _check_events(entry: Table, dialect: Dialect, event: Event) -> None:
    """Raise ConfigError for a hook whose system has no such event, or knows no hooks that are not awaited."""
    if event not in dialect.events:
        hint = f"its events are {', '.join(dialect.events)}"
        raise entry.error("type", f"is not for {event} hooks: {dialect.name} has no such event", hint)
    if entry.flag("async"):
        raise entry.error("async", f"is not for hooks of {dialect.name}: a host awaits each of them", "remove async")


def _check_policy(entry: Table, event: Event, type_name: str) -> None:
    """Raise ConfigError for what a policy cannot have: it judges a call before it runs, and refuses if it fails."""
    if event is not Event.PRE_TOOL_USE:
        problem = f"is for PreToolUse: a policy of type {type_name!r} decides about calls, and a {event} hook cannot"
        raise entry.error("type", problem, "write it as [[hooks.PreToolUse]]")
    if entry.flag("async"):
        raise entry.error("async", "is not for a policy: in the background it would decide nothing", "remove async")


def _on_failure(entry: Table, handler: Handler, written: str) -> OnFailure | None:
    """The hook's own setting. A policy that fails refuses, whatever holds for other hooks. Raises ConfigError."""
    if handler.type not in policy_input.TYPES:
        return OnFailure(written) if "on_failure" in entry.members else None
    if written not in (OnFailure.DIALECT, OnFailure.DENY):
        hint = 'remove it; to watch a policy first, write mode = "monitor"'
        raise entry.error("on_failure", "of a policy cannot be 'allow': a policy that fails refuses the call", hint)
    return OnFailure.DENY


def _timeout(entry: Table, event: Event, default: float) -> float:
    """Seconds; of a SessionEnd hook a few, because the agent has disconnected."""
    if event is not Event.SESSION_END:
        return entry.plausible_seconds("timeout", default)
    seconds = entry.plausible_seconds("timeout", shared_hook_file.SESSION_END_TIMEOUT)
    return min(seconds, shared_hook_file.SESSION_END_TIMEOUT_LIMIT)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """Claude Code's document, with the time of the event: a hook that decides by the time can be tested so.

    Policies get the input document of all policy engines.
    """
    if spec.type in policy_input.TYPES:
        return policy_input.write_input(context)
    more = _timestamp(context.at) if context.at else b""
    if context.labels is not None:
        more += b',"labels":' + msgspec.json.encode(context.labels)
    document = claude_input.write_input(spec, context, more)
    return replace(document, calls=context.calls) if context.calls is not None and spec.type == "python" else document


class _Labels(msgspec.Struct, frozen=True):
    addLabels: tuple[Label, ...] = ()
    removeLabels: tuple[Label, ...] = ()


class _WithLabels(msgspec.Struct, frozen=True):
    hookSpecificOutput: _Labels = _Labels()


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """As Claude Code reads it, with the labels that it adds and removes."""
    verdict = claude_output.read_output(spec, result)
    if b"Labels" not in result.stdout or verdict.failure:
        return verdict
    try:
        labels = msgspec.json.decode(result.stdout, type=_WithLabels).hookSpecificOutput
    except msgspec.MsgspecError as problem:
        return Verdict(failure=f"printed labels that cannot be read{shared_output.explanation(str(problem))}")
    return replace(verdict, added_labels=labels.addLabels, removed_labels=labels.removeLabels)


def _timestamp(at: float) -> bytes:
    seconds, milliseconds = divmod(round(at * 1000), 1000)
    return b'%b%03dZ"' % (_whole_second(seconds), milliseconds)


@lru_cache(maxsize=1)  # calls come within a second, and formatting it takes longer than all the rest of the document
def _whole_second(seconds: int) -> bytes:
    return f',"timestamp":"{iso_8601(seconds)[: -len("000Z")]}'.encode()


OWN: Final = replace(
    CLAUDE,
    name="hookproxy",
    reads_transcript=False,  # it costs a write for each call, and `labels` and `session.calls` say what a guard needs
    write_input=write_input,
    read_output=read_output,
    output_fields={
        **CLAUDE.output_fields,
        "hookSpecificOutput.addLabels": Effect.SETS_LABELS,
        "hookSpecificOutput.removeLabels": Effect.SETS_LABELS,
    },
    described_by="hookproxy's own reference",
    default_timeout=60.0,  # MCP agents commonly give up on a call after a minute: a slower hook would be of no use
    tool_names=ToolNames.BARE,
    recognises=lambda _members: False,
    folders=(),
    agents=(),
)
