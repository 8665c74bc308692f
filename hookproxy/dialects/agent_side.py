"""The agent's side of a hook system: the documents that its agent gives to hooks, and the output that it reads.

`Dialect` describes hooks that hookproxy runs. `AgentSide` describes an agent that runs `hookproxy hook` as one of its
own hooks, so that a hook of another system serves it. Law 3: what it cannot express is never taken for an approval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Flag, auto
from functools import partial
from importlib import import_module
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from ..jsonrpc import raw_json
from ..model.aliases import Alias, ToolSpellings
from ..model.hooks import AgentState, Event, EventContext, Outcome, Permission, Session
from ..model.settings import ServerNamed
from .agent_documents import DocumentSigns, Members
from .dialect import HookFileForm, HookList, WrittenEntry
from .index import DOCUMENTS
from .registry import STANDARDS, hook_system, module_name


class Can(Flag):
    """What an agent lets its hooks do, beyond letting a call pass and refusing it."""

    NOTHING = 0
    ALLOW = auto()  # approve a call for which it would ask the person
    ASK = auto()  # have the person asked
    REWRITE = auto()  # change a call's arguments
    TELL_BEFORE = auto()  # tell the model something before a call
    TELL_AFTER = auto()  # tell the model something after a call
    REPLACE = auto()  # change a tool's output
    BLOCK_AFTER = auto()  # mark a result as unacceptable, with a reason for the model


class HookDecision(Struct, frozen=True):
    """What a hook decided about an event, for an agent."""

    permission: Permission | None = None
    """Before a call: its decision. After a call: DENY means that the result is unacceptable."""
    reason: str = ""
    arguments: bytes | None = None
    """Before a call: all arguments, a JSON object on one line, under the agent's names."""
    feedback: str = ""
    """For the model."""
    replacement: bytes | None = None
    """After a call: JSON in place of the tool's output."""
    message: str = ""
    """For the person."""
    stop: bool = False
    """The agent must stop."""


class HookOutput(Struct, frozen=True):
    """What the agent reads from its hook."""

    stdout: bytes = b""
    stderr: str = ""
    status: int = 0


class AgentEvent(Struct, frozen=True):
    """An event as an agent gave it to its hook."""

    name: str
    """As the agent spells it."""
    context: EventContext
    """For a tool of the agent's own that does what one of Claude Code's does, with the alias for it."""
    others: tuple[EventContext, ...] = ()
    """Further parts of the same call, if no single one expresses it: a hook runs for each of them."""


class NothingToJudge(Exception):
    """A document is about an event of which no hook of another system has a notion. The agent reads `output`."""

    def __init__(self, output: HookOutput) -> None:
        super().__init__(output)
        self.output = output


def refuse_by_status(reason: str) -> HookOutput:
    """The output that refuses a call, whatever it is about: exit status 2, with the reason on standard error."""
    return HookOutput(stderr=reason, status=2)


def session_of(
    members: Members,
    environ: Mapping[str, str],
    *,
    ids: tuple[str, ...] = ("session_id",),
    cwd: str = "cwd",
    project_variable: str = "",
) -> Session:
    """The session of an event: its id is the first of these members that is there, its folder is the member `cwd`.

    Without that member it is the folder of this process. The project is in a variable, or else it is that folder.
    """
    folder = members.text(cwd) or environ.get("PWD", "/")
    return Session(members.text(*ids), "", folder, environ.get(project_variable) or folder)


def _server_tool(members: Members, tool_name: str) -> tuple[str, str] | None:
    """Server and tool of a name as Claude Code composes it, whose document also names the server."""
    server = members.object("mcp_server").text("name")
    prefix = f"mcp__{server}__"
    if server and tool_name.startswith(prefix):
        return server, tool_name.removeprefix(prefix)
    return split_mcp_name(tool_name)


class DocumentForm(Struct, frozen=True):
    """Where the documents of one agent have what all of them say. The defaults are Claude Code's."""

    event: tuple[str, ...] = ("hook_event_name",)
    """The member with the event's name, in its spellings."""
    event_name: Callable[[str], str] = lambda name: name
    """The name in `AgentSide.events` for the name in a document."""
    session: Callable[[Members, Mapping[str, str]], Session] = session_of
    triggers: Mapping[Event, str] = field(default_factory=dict)
    """The triggers of events that have a fixed one. Otherwise a member has it."""
    tool_name: Callable[[Members], str] = lambda members: members.required("tool_name")
    """The agent's name of the tool, as its dialect spells it. Raises ValueError."""
    arguments: Callable[[Members], bytes] = lambda members: members.raw("tool_input")
    server_tool: Callable[[Members, str], tuple[str, str] | None] = _server_tool
    """Server and tool of the tool that the agent calls by this name; None: it is one of its own."""
    server_named: ServerNamed = ServerNamed.FOR_CERTAIN
    """Whether its documents say which server a tool is of, unless `server_tool` finds none."""
    tool_use_id: str = "tool_use_id"
    failed: Callable[[Members], bool] = lambda _members: False
    """Whether a call failed whose event may also be about a successful one."""
    result: str = "tool_response"
    error: str = "error"
    """The members with the result of a call, and with the error of a failed one."""
    outcome: Callable[[Members, bool], Outcome] | None = None
    """The outcome of a call, or of one that failed, if it is not in these two."""


_CALL_EVENTS: Final = (
    Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.PERMISSION_REQUEST,
)  # fmt: skip
_CONVERTED: Final = (*_CALL_EVENTS, Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION)


def _read_nothing(_document: bytes, _environ: Mapping[str, str]) -> AgentEvent:
    raise NotImplementedError


def _write_nothing(_entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    raise NotImplementedError


class AgentSide(Struct, frozen=True, kw_only=True):
    """How an agent gives events to its hooks, and what it reads from them."""

    files: HookFileForm | None = None
    """The form of its hook files. It gives its name, and its events and how a file is written unless fields say it."""
    name: str = ""
    """The name of its dialect."""
    file: str
    """Where its hook file is in a project."""
    can: Can
    form: DocumentForm = DocumentForm()
    read_document: Callable[[bytes, Mapping[str, str]], AgentEvent] = _read_nothing
    """Raises ValueError for a document that it cannot read, and NothingToJudge. Default: `read_document` by `form`."""
    write_output: Callable[[AgentEvent, HookDecision], HookOutput]
    """`HookDecision` has nothing that is beyond `can`."""
    write_hook_file: Callable[[Sequence[WrittenEntry]], Mapping[str, str]] = _write_nothing
    """The texts of the hook files, by their paths in the project."""
    events: Mapping[str, Event] = field(default_factory=dict)
    """Its names of events. Several may stand for one: then a hook of that event is one for each."""
    documents: DocumentSigns = DocumentSigns()
    """How its documents are recognised where the agent is not named."""
    refuse: Callable[[str], HookOutput] = refuse_by_status
    """The output that refuses a call whose document cannot be read."""
    has_matchers: bool = True
    """Its hook files can name the tools of a hook."""
    also_reads: tuple[str, ...] = ()
    """Other systems whose hook files the agent runs too: it gives its own documents to their hooks."""
    also: Mapping[Event, str] = field(default_factory=dict)
    """Events that have the name of another one, which `events` has: a document's other members tell which it is."""
    merges: bool = False
    """It changes only the arguments that a hook names, so that a hook cannot remove one."""
    read_command: Callable[[WrittenEntry, str], HookList] | None = None
    """The hooks of an entry, for a project folder, where no text of a file describes them: its hooks are programs."""
    own_tools: ToolSpellings = field(default_factory=dict)
    """Its own tools, where its dialect has none, or others that its hooks may know as well; empty: the dialect's."""
    own_mcp_names: Callable[[str, str], str] | None = None
    """The names that it gives to tools of MCP servers, where its dialect has others."""
    own_names_are_unique: bool = True
    """No server's tool can have the name of one of its own tools."""
    script_folder: str = ""
    """Its hook files hold paths of scripts: the folder in a project for those; empty: they hold command lines."""
    user_folder: tuple[str, str] | None = ("", "")
    """How the path of a project's file begins, and what a person's own one in the home folder has instead; None: the
    agent reads no such file there."""
    user_variable: str = ""
    """The environment variable that names another folder than the first one of that path."""

    own_tool_members: Mapping[str, object] = field(default_factory=dict)
    """What members that are about a tool's server are in a document about one of its own tools; None: absent."""
    harmless_arguments: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """For its own tools whose arguments have no familiar form: those of a call that changes as good as nothing."""

    def __post_init__(self) -> None:
        """Take what `files` and `form` say."""
        if self.read_document is _read_nothing:
            force_setattr(self, "read_document", partial(read_document, self))
        if self.files is None:
            return
        force_setattr(self, "name", self.files.dialect)
        if not self.events:
            events = {name: event for name, event in self.files.events.items() if event in _CONVERTED}
            force_setattr(self, "events", events)
        if self.write_hook_file is _write_nothing:
            force_setattr(self, "write_hook_file", partial(self.files.write, self.file))

    def tool_spellings(self) -> ToolSpellings:
        """The agent's own tools that do what Claude Code's tools do."""
        return self.own_tools or hook_system(self.name).tool_spellings

    def mcp_tool_name(self, server: str, tool: str) -> str:
        """The name that the agent gives to a server's tool."""
        return (self.own_mcp_names or hook_system(self.name).mcp_tool_name)(server, tool)


def event_names(side: AgentSide, event: Event) -> tuple[str, ...]:
    """The agent's names of an event; none if it has no such event."""
    names = tuple(name for name, known in side.events.items() if known is event)
    return (*names, side.also[event]) if event in side.also else names


def user_path(side: AgentSide, path: str) -> str:
    """The path in the home folder of a person's own file, for the path of a project's.

    Raises ValueError if the agent reads none there.
    """
    if side.user_folder is None or not path.startswith(side.user_folder[0]):
        raise ValueError(f"{side.name} reads no hook file in the home folder")
    before, after = side.user_folder
    return after + path.removeprefix(before)


def event_of(side: AgentSide, name: str) -> Event:
    """The event that the agent calls `name`. Raises ValueError for one that hookproxy does not convert."""
    if name not in side.events:
        raise ValueError(f"{name} is an event that hookproxy does not convert")
    return side.events[name]


def names() -> tuple[str, ...]:
    """The dialects that have an agent's side."""
    return tuple(DOCUMENTS)


def agent_side(name: str) -> AgentSide | None:
    """The agent's side of a dialect: `AGENT_SIDE` of its module, or of its package's module `agent_side`; None: it has
    none. An edition of a dialect is about the same agent."""
    base = name.partition("@")[0]
    if base not in DOCUMENTS:
        return None
    module = module_name(base)
    side = getattr(import_module(module), "AGENT_SIDE", None) or import_module(f"{module}.agent_side").AGENT_SIDE
    assert isinstance(side, AgentSide)
    return side


def side_of(name: str) -> AgentSide | None:
    """As `agent_side`, also for a standard: the side of its hosts."""
    if name not in STANDARDS:
        return agent_side(name)
    side = import_module(f"{module_name(name)}_side").AGENT_SIDE
    assert isinstance(side, AgentSide)
    return side


def convertible() -> tuple[str, ...]:
    """The dialects that have an agent's side, and the standards."""
    return (*names(), *STANDARDS)


# --- reading documents ---


def read_document(side: AgentSide, document: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of the agent, as its `form` says. Raises ValueError."""
    form, members = side.form, Members(document)
    name = form.event_name(members.required(*form.event))
    event = event_of(side, name)
    session = form.session(members, environ)
    if event not in _CALL_EVENTS:
        trigger = form.triggers.get(event) or members.text("source", "reason", "notification_type")
        return AgentEvent(name, EventContext(event, session, trigger=trigger, message=members.text("message")))
    tool_name = form.tool_name(members)
    arguments = arguments_of(form.arguments(members))
    if server_tool := form.server_tool(members, tool_name):
        server, tool = server_tool
        session = replace(session, server=server)
        context = EventContext(event, session, tool=tool, arguments=arguments)
    else:
        context = EventContext(event, session, tool=tool_name, arguments=arguments, alias=_own_alias(side, tool_name))
    if event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        failed = event is Event.POST_TOOL_USE_FAILURE or form.failed(members)
        outcome = (form.outcome or partial(_outcome, form))(members, failed)
        event = Event.POST_TOOL_USE_FAILURE if failed else event
        context = replace(context, event=event, outcome=outcome)
    context = replace(context, tool_use_id=members.text(form.tool_use_id), agent_state=_state(members))
    return AgentEvent(name, context)


def _state(members: Members) -> AgentState | None:
    """What the document says of the agent, in the members that most systems have taken over from Claude Code."""
    state = AgentState(*(members.text(name) for name in AgentState.__struct_fields__))
    return None if state == AgentState() else state


def _outcome(form: DocumentForm, members: Members, failed: bool) -> Outcome:
    duration = milliseconds(members.raw("duration_ms"))
    if failed:
        return text_outcome(members.text(form.error) or "the tool failed", failed=True, duration_ms=duration)
    return result_outcome(members.raw(form.result, b'""'), duration_ms=duration)


def arguments_of(raw: bytes) -> bytes:
    """A call's arguments: an object, or a string with an object as JSON. Raises ValueError."""
    if raw.startswith(b'"'):
        raw = (raw_json.text(raw) or "").encode()
    raw = raw or b"{}"
    raw_json.fields(raw)
    return raw


def is_own_tool(side: AgentSide, name: str) -> bool:
    """The name is that of a tool of the agent's own which does what a tool of Claude Code does."""
    return any(spelling.name == name for of_tool in side.tool_spellings().values() for spelling in of_tool)


def _own_alias(side: AgentSide, name: str) -> Alias | None:
    """The alias for a tool of the agent's own; None: it does what none of Claude Code's tools does."""
    spellings = side.tool_spellings()
    if not spellings:
        return Alias(name, name)
    aliases = [
        Alias(name, known, {argument: own for argument, own in spelling.arguments.items() if argument != own})
        for known, of_tool in spellings.items()
        for spelling in of_tool
        if spelling.name == name
    ]
    if not aliases:
        return Alias(name, name)
    first, *others = aliases
    return Alias(name, first.name, first.arguments, alternatives=tuple(others))


def edit_context(context: EventContext, edits: Sequence[bytes], renamed: Mapping[str, str]) -> EventContext:
    """The context of an edit by a tool of the agent's own, for guards of Edit and of MultiEdit.

    They see the list of edits, each an object, and all texts as one: no text is hidden behind the first. `renamed` has
    the agent's names of the other arguments. Such arguments cannot be turned back.
    """
    members = raw_json.fields(context.arguments)
    texts: dict[str, object] = {}
    for key in ("old_string", "new_string"):
        texts[key] = "\n".join(filter(None, (Members(edit).text(key) for edit in edits)))
    arguments = {**members, "edits": [msgspec.Raw(edit) for edit in edits], **texts}
    alias = Alias(context.tool, "Edit", renamed, alternatives=(Alias(context.tool, "MultiEdit", renamed),))
    return replace(context, arguments=raw_json.encode(arguments), alias=alias)


def text_outcome(text: str, *, failed: bool = False, duration_ms: int = 0) -> Outcome:
    """The outcome of a call of which the agent gives only a text."""
    content = raw_json.encode([{"type": "text", "text": text}])
    return Outcome(content, has_result=True, error=text if failed else "", duration_ms=duration_ms)


def result_outcome(raw: bytes, *, failed: bool = False, duration_ms: int = 0) -> Outcome:
    """The outcome of a call whose result the agent gives as JSON: MCP's result, its blocks, a text, anything else."""
    if raw.startswith(b"["):
        return Outcome(raw, has_result=True, error="the tool failed" if failed else "", duration_ms=duration_ms)
    if raw.startswith(b"{"):
        members = Members(raw)
        content = members.raw("content")
        if content.startswith(b"["):
            structured = members.raw("structuredContent")
            whole = raw if structured else b""
            error = "the tool failed" if failed else ""
            return Outcome(
                content, has_result=True, error=error, structured=structured, whole=whole, duration_ms=duration_ms
            )
    return text_outcome(raw_json.text_or_json(raw), failed=failed, duration_ms=duration_ms)


def session_in_first(roots: bytes, session_id: str, environ: Mapping[str, str], variable: str = "") -> Session:
    """The session of a document that has a list of folders, or else the folder in this variable or of the agent."""
    folders = raw_json.items(roots)
    folder = (raw_json.text(bytes(folders[0])) if folders else "") or environ.get(variable) or environ.get("PWD", "/")
    return Session(session_id, "", folder, folder)


def split_mcp_name(name: str) -> tuple[str, str] | None:
    """Server and tool of a name as Claude Code composes it; None: it is not such a name."""
    if not name.startswith("mcp__"):
        return None
    server, separator, tool = name[5:].partition("__")
    return (server, tool) if separator else None


def split_underscored_name(name: str) -> tuple[str, str] | None:
    """As `split_mcp_name`, also for `mcp_SERVER_TOOL`: there the server is empty, because its end is unknown."""
    found = split_mcp_name(name)
    return ("", name[4:]) if found is None and name.startswith("mcp_") else found


def milliseconds(raw: bytes) -> int:
    """A duration in a document; 0 if it is none, such as a negative number: limits add durations."""
    return max(int(raw), 0) if raw_json.is_integer(raw) and len(raw) < 16 else 0  # ms of a million years


# --- writing output ---


def json_output(value: Mapping[str, object]) -> HookOutput:
    """The object as output with exit status 0; nothing at all for an empty one."""
    return HookOutput(raw_json.encode(value) + b"\n" if value else b"")


def output_by_status(event: AgentEvent, decision: HookDecision) -> HookOutput:
    """The output for an agent that reads nothing but the exit status and the reason on standard error."""
    if event.context.event is Event.PRE_TOOL_USE and decision.permission is Permission.DENY:
        return refuse_by_status(decision.reason or "denied by a hook")
    return HookOutput(stderr=decision.message)
