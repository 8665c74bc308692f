"""The generated part of a page of docs/dialects: a dialect's data, and what its own functions write and read."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tables import EVENT_TEXTS, row

from hookproxy.config.models import Use
from hookproxy.config.pydantic_models import model_of
from hookproxy.dialects.dialect import Dialect
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import (
    Ended,
    Event,
    EventContext,
    HookResult,
    HookSpec,
    Order,
    Outcome,
    Permission,
    Session,
    Verdict,
)

ORDERS = {
    Order.PARALLEL: "All hooks that match run at once. If several rewrite, the last one to finish wins.",
    Order.TOGETHER: "All hooks that match run at once. If several rewrite, the last one in the file wins.",
    Order.SERIAL: "Hooks that match run one after another, in the order of the file.",
    Order.UNTIL_DENIED: "Hooks that match run one after another, in the order of the file, until one denies.",
    Order.UNTIL_STOPPED: "Hooks that match run one after another, in the order of the file, until one stops the agent.",
    Order.PIPELINE: "Hooks that match run one after another, and each one gets the arguments as rewritten so far.",
}
FAILURE = "What happens after a failure: [when a hook fails](../concepts.md#when-a-hook-fails)."
CALLS = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE)
RESULTS = {
    "exit status 0, `text` on standard output": HookResult(Ended.EXITED, 0, b"text\n"),
    "exit status 1, `why` on standard error": HookResult(Ended.EXITED, 1, b"", b"why\n"),
    "exit status 2, `why` on standard error": HookResult(Ended.EXITED, 2, b"", b"why\n"),
    "exit status 3, `why` on standard error": HookResult(Ended.EXITED, 3, b"", b"why\n"),
    "exit status 0, half of a JSON object": HookResult(Ended.EXITED, 0, b'{"a": \n}'),
    "killed by signal 9": HookResult(Ended.SIGNALLED, 9),
    "it times out": HookResult(Ended.TIMED_OUT),
}
SESSION = Session("5f1c9a", "files", "/home/you/project", "/home/you/project")
AFTER = Outcome(b'[{"type":"text","text":"hello"}]', True, duration_ms=3)


def parts() -> dict[str, Callable[[], str]]:
    """The generated part of each dialect's page, by the dialect's name."""
    return {name: partial(_page, name) for name in DIALECTS}


def new_pages() -> Iterator[tuple[str, str]]:
    """The pages of dialects that have none yet: the generated part, under a title for people to complete."""
    for name in _families():
        path = f"docs/dialects/{name}.md"
        if not Path(path).exists():
            yield (
                path,
                f"# {name}: {name.replace('-', ' ').title()}\n\n<!-- made: {name} -->\n{_page(name)}\n<!-- end -->\n",
            )


def navigation(text: str) -> str:
    """The text of mkdocs.yml with the page of each dialect."""
    lines = "".join(f"          - dialects/{name}.md\n" for name in ("README", *_families()))
    return re.sub(r"(?: +- dialects/\S+\.md\n)+", lines, text)


def _families() -> list[str]:
    return [name for name in DIALECTS if "@" not in name]


def _page(name: str) -> str:
    dialect = DIALECTS[name]
    return "\n\n".join(
        [
            f"`--hooks {name}=FILE` follows {dialect.described_by}. {ORDERS[dialect.order]} "
            f"The default timeout is {dialect.default_timeout:g} seconds.",
            "\n".join(_properties(dialect)),
            f"### When its hooks run\n\n{_events(dialect)}",
            f"### What a hook reads\n\n{_inputs(dialect)}",
            f"### What a hook's output means\n\n{_results(dialect)}\n\n{FAILURE}\n\n{_output_members(dialect)}",
        ]
    )


def _properties(dialect: Dialect) -> Iterator[str]:
    kind = (
        "Files are programs, named by their events"
        if dialect.executables
        else f"Files end in {_list(dialect.suffixes)}"
    )
    yield f"- {kind}" + (
        f"; in {_list(dialect.folders)}, they belong to the project in the folder above." if dialect.folders else "."
    )
    here = "in the folder in which hookproxy is started, unless `project` or `--project` names another"
    yield (
        f"- Hooks run in that project; hooks of files elsewhere, {here}." if dialect.folders else f"- Hooks run {here}."
    )
    tool_name = dialect.mcp_tool_name("SERVER", "TOOL") if dialect.tool_names == "mcp" else "TOOL"
    yield f"- Tools are called `{tool_name}` unless `tool_names` says otherwise."
    if own := [spelled[0].name.rpartition(": ")[2] for spelled in dialect.tool_spellings.values()]:
        seen = _list(tuple(dict.fromkeys(own)))
        yield f"- Tools that [do the same](../concepts.md#familiar-names) as its own are also known as: {seen}."
    yield _resources(dialect)
    for key in dialect.options:
        yield f"- `{key}` in `[[use]]`: {(model_of(Use).model_fields[key].description or '').partition(': ')[2]}"
    if dialect.agents:
        yield f"- Agents that run such hooks themselves, so that they would run twice: {_list(dialect.agents)}."
    if not dialect.constant_environment:
        yield "- The variables of its hooks depend on the call, so `warm` cannot be used."


def _resources(dialect: Dialect) -> str:
    """The names by which hooks know requests for resources."""
    names = {
        name: [spelling.name for spelling in dialect.tool_spellings.get(name, ())] or [name]
        for name in ("ReadMcpResourceTool", "Read", "ListMcpResourcesTool")
    }
    read, path, listed = (f"`{spelled[0].rpartition(': ')[2]}`" for spelled in names.values())
    methods = "[resources](../permissions.md#resources-prompts-and-completions)"
    return (
        f"- A read of {methods} is known as {read}, where its URI has a path also as {path}, and their list as "
        f"{listed}. A matcher that names a method, such as `prompts/get`, matches its requests."
    )


def _list(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _events(dialect: Dialect) -> str:
    rows = [row(f"`{name}`", EVENT_TEXTS[event]) for name, event in dialect.events.items()]
    rows += [row(f"`{name}`", f"never: {reason}") for name, reason in dialect.unavailable.items()]
    return "\n".join([row("event", "here"), row("---", "---"), *rows])


def _inputs(dialect: Dialect) -> str:
    """The input of a hook before and after one call, as the dialect writes it."""
    blocks = []
    for event in _calls(dialect):
        spec = _spec(dialect, event)
        hook_input = dialect.write_input(spec, _event_context(dialect, event))
        env = "".join(f"{name}={value}\n" for name, value in sorted(hook_input.env.items()))
        document = json.dumps(json.loads(hook_input.stdin), indent=2, ensure_ascii=False)
        blocks.append(f"`{spec.event_name}` on standard input:\n\n<!-- block: example -->\n```json\n{document}\n```")
        if env:
            blocks.append(f"… and in environment variables:\n\n<!-- block: example -->\n```text\n{env}```")
    return "\n\n".join(blocks)


def _calls(dialect: Dialect) -> list[Event]:
    """The events before and after a call that the dialect has."""
    return [event for event in CALLS if event in dialect.events.values()]


def _spec(dialect: Dialect, event: Event) -> HookSpec:
    names = [name for name, each in dialect.events.items() if each is event]
    plain = [name for name in names if name.replace("_", "").lower() == event.value.lower()]
    return HookSpec(
        dialect=dialect.name,
        source="",
        event=event,
        label="guard",
        shell="./guard",
        timeout=dialect.default_timeout,
        event_name=(plain or names)[0],
    )


def _event_context(dialect: Dialect, event: Event) -> EventContext:
    return EventContext(
        event,
        SESSION,
        "read_file",
        dialect.mcp_tool_name("files", "read_file") if dialect.tool_names == "mcp" else "read_file",
        "toolu_01",
        b'{"path":"notes.txt"}',
        outcome=AFTER if event is Event.POST_TOOL_USE else None,
        request_id="7",
        at=1.8e9,
    )


def _results(dialect: Dialect) -> str:
    events = _calls(dialect)
    rows = [
        row(text, *(_verdict_text(event, dialect.read_output(_spec(dialect, event), result)) for event in events))
        for text, result in RESULTS.items()
    ]
    heads = ["the hook", *("before a call" if event is Event.PRE_TOOL_USE else "after a call" for event in events)]
    return "\n".join([row(*heads), row(*["---"] * len(heads)), *rows])


def _verdict_text(event: Event, verdict: Verdict) -> str:
    """What a verdict does, as text."""
    parts = []
    if verdict.failure:
        closed = verdict.fails_closed or (verdict.permission is Permission.DENY and event is Event.PRE_TOOL_USE)
        parts.append("failure: the call is refused" if closed else "failure: `on_failure` decides")
    elif verdict.permission is Permission.DENY and event is Event.PRE_TOOL_USE:
        parts.append(f"the call is refused: “{verdict.reason}”")
    if verdict.permission is Permission.DENY and event is Event.POST_TOOL_USE:
        parts.append("the result is marked as an error")
    if verdict.replacement is not None:
        parts.append(f"“{json.loads(verdict.replacement)}” takes the place of the result")
    parts += [f"the model reads “{' '.join(text.split())}”" for text in verdict.feedback]
    return "; ".join(parts) or "nothing"


def _output_members(dialect: Dialect) -> str:
    if not dialect.output_fields:
        return "Output is not read as JSON: it is plain text."
    rows = [row(f"`{name}`", str(effect)) for name, effect in dialect.output_fields.items()]
    return "\n".join([row("member of its JSON", "effect"), row("---", "---"), *rows])
