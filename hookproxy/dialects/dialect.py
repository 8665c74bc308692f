"""The shape of a dialect: how one hook system spells hooks, events and verdicts, as data and a few functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from ..model.aliases import ToolSpellings
from ..model.hooks import Document, Event, EventContext, HookResult, HookRun, HookSpec, Order, Verdict
from ..model.late_pattern import late_pattern
from ..model.model_endpoint import ModelEndpoint
from ..model.settings import AgentRule, OnFailure, SeenNames, ToolNames

T = TypeVar("T")

TWO_NOTIFICATIONS: Final = {
    "permission_prompt": "permission_prompt",
    "elicitation_dialog": "elicitation_dialog",
    "elicitation_url_dialog": "elicitation_dialog",
}
"""The notifications of systems whose document has one type for all dialogs."""


NOT_IN_A_NAME: Final = late_pattern(r"[^A-Za-z0-9_-]")
"""What Claude's API refuses in a name."""


def claude_tool_name(server: str, tool: str) -> str:
    """The name that Claude Code gives to a server's tool."""
    return f"mcp__{NOT_IN_A_NAME.sub('_', server)}__{tool}"


def for_names(values: Mapping[T, str]) -> dict[str, T]:
    """Each name with its value, from the names of each value, with blanks between them."""
    return {name: value for value, names in values.items() for name in names.split()}


class Plugin(Struct, frozen=True):
    """The plugin that a hook file belongs to."""

    root: str
    """The folder of its own files."""
    data: str = ""
    """The folder for what it stores, which is created before its hooks run. Empty: its system documents none."""


class FoundFile(Struct, frozen=True):
    """A hook file that was found in a folder."""

    path: str
    plugin: Plugin | None = None
    optional: bool = False
    """If it cannot be read, it is left out with a note: nobody has named this file."""


class UserFiles(Struct, frozen=True):
    """Where a person's own hook files are."""

    folder: str
    """In the home folder; empty: only `variable` names one."""
    files: str
    """The files in the folder, with `*` for any name."""
    variable: str = ""
    """The environment variable that names another folder."""
    whole_with: tuple[str, ...] = ()
    """The folder has more than these files of hooks: it is named as a whole if it has one of them."""


class FolderContent(Struct, frozen=True):
    """The hook files of a folder, and sentences about what else it has, as in `HookList`."""

    files: tuple[FoundFile, ...]
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class Files(Protocol):
    """Reads files for a dialect, and knows where it looks for them."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of this process."""

    @property
    def cwd(self) -> str:
        """The folder in which hookproxy was started."""

    @property
    def home(self) -> str:
        """The home folder; empty if there is none."""

    def text(self, path: str) -> str:
        """The text of a file. Raises ConfigError if it cannot be read."""


class HookFile(Struct, frozen=True):
    """A hook file before it is parsed. `Dialect.read_hook_file` parses the text, and names `path` in every error."""

    path: str
    """An absolute path."""
    text: str
    project_dir: str
    """The folder that relative commands start from, and the value of CLAUDE_PROJECT_DIR. `config` determines it."""
    options: Mapping[str, object] = field(default_factory=dict)
    """The values of the `[[use]]` keys that only this dialect has (`Dialect.options`), with their documented types."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """The environment of this process, for variables that a hook file may name."""
    plugin: Plugin | None = None
    cwd: str = "/"
    """The working directory of this process and of the server."""
    model: ModelEndpoint | None = None
    """The model that hooks of type `prompt` and `agent` ask; None: there is none, and they cannot run."""


class WrittenEntry(Struct, frozen=True):
    """One hook of a hook file that is written."""

    event_name: str
    command: str
    """A command line for the shell."""
    names: tuple[str, ...] = ()
    """The tools for which it runs, as the system spells them; empty: all."""
    matcher: str = ""
    """Instead of `names`: a matcher in the system's own syntax."""
    only_if: str = ""
    timeout: float = 0.0
    """Seconds; 0: the system's default."""
    fails_closed: bool = False


class HookList(Struct, frozen=True):
    """The hooks of a file that can run, and sentences about its other entries, each with its place.

    All of them are reported once at start-up.
    """

    hooks: tuple[HookSpec, ...]
    notes: tuple[str, ...] = ()
    """What does not do what its author wrote: an entry that is left out, a key that is ignored. Findings of `check`."""
    remarks: tuple[str, ...] = ()
    """What can never happen behind MCP, such as the events of a prompt: no fault of the file."""
    rules: tuple[AgentRule, ...] = ()
    """The file's permission rules, if the configuration applies them."""


class Effect(StrEnum):
    """What a member of a hook's output does here. The values are the row titles of the README's table."""

    DECIDES = "allow, deny, ask"
    REASON = "the reason"
    REWRITES = "rewrite the arguments"
    REWRITES_META = "replace or remove `_meta`"
    TELLS_MODEL = "tell the model"
    REPLACES = "replace the output"
    HIDES = "hide the output"
    TELLS_PERSON = "tell the person"
    DENIES_AND_STOPS = "deny, and stop other calls"
    ALLOWS_FOR_SESSION = "allow for the session"
    REPEATS_CALL = "repeat the call"
    ANSWERS_ELICITATION = "answer the server's elicitation"
    SETS_VARIABLES = "set variables for later hooks"
    SETS_LABELS = "add and remove labels of the session"
    NONE = "accepted, without effect"


class HookFileForm(Protocol):
    """What `Dialect` takes from the description of its hook files, a `CommandFile` of `shared.command_file`."""

    @property
    def dialect(self) -> str:
        """The name of the dialect."""

    @property
    def events(self) -> Mapping[str, Event]:
        """As `Dialect.events`."""

    @property
    def unavailable(self) -> Mapping[str, str]:
        """As `Dialect.unavailable`."""

    @property
    def default_timeout(self) -> float:
        """Seconds."""

    def read(self, file: HookFile) -> HookList:
        """As `Dialect.read_hook_file`."""

    def fits(self, members: Mapping[str, object]) -> bool:
        """Whether a file with these members has this form."""

    def write(self, path: str, entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
        """The text of a file with these entries, by its path."""


class Host(Protocol):
    """What a system demands of the host of its hooks, beyond running them: consulting a program, and a record."""

    def identity(self, document: bytes | bytearray, /) -> str | None:
        """The identity of what a hook gets; None: the host has none. Raises ValueError for what cannot have one."""

    def denial(self, run: HookRun, /) -> bytes:
        """The denial of this run as the program gets it (`EventContext.denial`)."""

    def identity_asked(self, request: bytes | bytearray, /) -> str | None:
        """The identity that the program is asked about, from what it gets."""

    def checked(self, run: HookRun, identity: str | None, /) -> HookRun:
        """The run of the program, which counts only if its answer names the identity of what it was asked."""

    def refused(self, spec: HookSpec, problem: str, /) -> Verdict:
        """The verdict where the event itself has no identity, as this hook's."""

    def record(self, event: Emitted, /) -> Mapping[str, object]:
        """The record of an event."""


class Emitted(Struct, frozen=True):
    """An event for which the hooks of a host have run."""

    document: bytes | bytearray
    """What its first hook got."""
    specs: Sequence[HookSpec]
    """The hooks, in their order."""
    runs: Sequence[HookRun]
    """Their runs, and those of the program that was consulted, as they ended."""
    input_identity: str | None
    """Of `document`."""
    enforced_identity: str | None
    """Of the same after what hooks have rewritten."""
    problem: str = ""
    """Why there is no identity where there must be one; empty: there is one."""


def _read_nothing(file: HookFile) -> HookList:
    raise NotImplementedError(file.path)


def _recognise_nothing(_members: Mapping[str, object]) -> bool:
    return False


class Dialect(Struct, frozen=True, kw_only=True):
    """How one hook system spells hooks, events and verdicts. `described_by` names the document that it follows."""

    files: HookFileForm | None = None
    """The form of its hook files. It gives the next four fields, and how files are read and recognised unless those
    fields say otherwise. Only an argument: it is None afterwards, so that each field can be replaced."""
    name: str = ""
    events: Mapping[str, Event] = field(default_factory=dict)
    """The events that can occur behind MCP, by the dialect's spelling."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """The document's other events, each with the reason why it cannot occur behind MCP."""
    default_timeout: float = 0.0
    """Seconds."""
    described_by: str
    output_fields: Mapping[str, Effect] = field(default_factory=dict)
    """The members of a hook's output that the document names, and what each does here. `a.b` is member `b` of `a`."""
    order: Order
    tool_names: ToolNames = ToolNames.MCP
    """Which name its hooks see if the configuration does not set it."""
    read_hook_file: Callable[[HookFile], HookList] = _read_nothing
    """Raises ConfigError, which names file and key."""
    write_input: Callable[[HookSpec, EventContext], Document]
    """The document and the variables that a hook gets for an event."""
    read_output: Callable[[HookSpec, HookResult], Verdict]
    """Never raises: invalid output is a Verdict with `failure`."""
    closed_by_field: bool = True
    """`HookSpec.fails_closed` is what the author of a hook has written. Otherwise the document says it of all hooks."""
    only_verdicts: bool = False
    """`read_output` takes all that is not a whole verdict for a failure, so there is no doubt about what passes."""
    unframed: Callable[[bytes], bytes] = lambda stdout: stdout
    """What a hook printed, without what its system documents around the output: progress lines, a prefix."""
    mcp_tool_name: Callable[[str, str], str] = claude_tool_name
    """The name that the system gives to a server's tool, from the names of both."""
    tool_spellings: ToolSpellings = field(default_factory=dict)
    """How the system spells the tools of its own that do what Claude Code's tools do."""
    spellings_for: Callable[[HookSpec], ToolSpellings] | None = None
    """The same names in the order that one hook expects, if that depends on the hook; None: it does not."""
    real_arguments: Callable[[HookSpec, EventContext, bytes], bytes] = lambda _spec, _context, arguments: arguments
    """A hook's `Verdict.arguments` under the names of the context, if `write_input` gives arguments another form.
    Raises ValueError if they cannot be brought back into it."""
    real_output: Callable[[EventContext, bytes], bytes] = lambda _context, replacement: replacement
    """A hook's `Verdict.replacement` in the form of the tool's own result, if `write_input` gives results another.
    Raises ValueError if it cannot be brought back into it."""
    with_result: Callable[[EventContext, bytes], EventContext] = lambda context, _replacement: context
    """The event for the next hook after one has given this replacement (of `real_output`). By default, each hook gets
    the tool's own result."""
    recognises: Callable[[Mapping[str, object]], bool] = _recognise_nothing
    """Whether a parsed hook file with these members has this dialect's shape. If several dialects recognise a file,
    the person must name one. Never raises."""
    recognises_at_home: Callable[[Mapping[str, object]], bool] | None = None
    """The same for a file in `folders`, where a shape that other systems share is enough; None: `recognises`."""
    shape_of: str = ""
    """The dialect whose files have the same shape: then only files in `folders` are recognised as this one's."""
    options: tuple[str, ...] = ()
    """The keys of `[[use]]` that only this dialect has. `config.models.Use` documents them."""
    folders: tuple[str, ...] = ()
    """Where such files are in a project, for example `.github/hooks`. The project is the folder above. `*` stands for
    a folder's name, such as a plugin's."""
    find_plugin: Callable[[str, Files], Plugin | None] = lambda _path, _files: None
    """The plugin that a hook file belongs to; None: none. Never raises."""
    read_folder: Callable[[str, Files], FolderContent | None] = lambda _path, _files: None
    """The hook files of a folder that the system knows, such as a plugin's. None for other folders: each file of theirs
    is a hook file. Raises ConfigError."""
    user_files: tuple[UserFiles, ...] = ()
    """A person's own hook files, for `setup` to propose."""
    project_files: tuple[str, ...] = ()
    """A project's hook files, with `*` for any name, for `setup` to propose."""
    file_names: tuple[str, ...] = ()
    """Names by which its files are known outside of `folders`, although other systems have files of the same shape."""
    own_files: tuple[str, ...] = ()
    """Names that only its files have: such a file is recognised as one in `folders`."""
    suffixes: tuple[str, ...] = (".json",)
    """The suffixes of its files' names, for a folder of such files."""
    executables: bool = False
    """A hook file is itself the program of its hook, so its text is not read."""
    modules: bool = False
    """A hook file is a module in a programming language, known by its suffix: its text is not a document."""
    notifications: Mapping[str, str] = field(default_factory=lambda: TWO_NOTIFICATIONS)
    """The types of Notification that can occur behind MCP, each with this system's name for it."""
    longest_feedback: int = 0
    """The characters of all feedback on one result together, which is then one text; 0: there is no limit."""
    hook_identity: Callable[[HookSpec], tuple[object, ...]] = lambda spec: spec.identity
    """What two matching entries share if they are one hook to the system, which runs it once for an event."""
    settle: Callable[[Sequence[HookRun]], Sequence[HookRun]] = lambda hook_runs: hook_runs
    """The runs of an event's hooks as they count together, from the runs in the order of the file: whose reason is
    read, and what becomes of several outputs. By default all reasons are, and the last output counts."""
    host: Host | None = None
    """Does what the system demands of the host of its hooks; None: nothing."""
    resolvers: tuple[HookSpec, ...] = ()
    """The program that may lift denials in a person's place, as a hook of each event at which it is consulted; empty:
    there is none, and a person is asked."""
    after_results_only: bool = False
    """Its hooks after a call run only if the call has a result, such as one with isError. An error without a result has
    no event."""
    last_answer_counts: bool = False
    """If several PermissionRequest hooks decide, the last decision counts. Otherwise a denial counts."""
    agents: tuple[str, ...] = ()
    """`clientInfo` names of agents that run such hooks themselves: with hookproxy in between they would run twice. A
    name that ends in `*` stands for all that begin so."""
    reads_transcript: bool = False
    """Its documents name a file with what was done in the session, in the form that Claude Code's has."""
    constant_environment: bool = False
    """`write_input` gives the same variables for each event, so a process may be started before there is an event."""
    variables: tuple[str, ...] = ()
    """Names of the identity variables that it sets. Hooks of other dialects do not inherit them."""

    def __post_init__(self) -> None:
        """Take what `files` says."""
        files = self.files
        if files is None:
            return
        force_setattr(self, "files", None)
        force_setattr(self, "name", files.dialect)
        force_setattr(self, "events", files.events)
        force_setattr(self, "unavailable", files.unavailable)
        force_setattr(self, "default_timeout", files.default_timeout)
        if self.read_hook_file is _read_nothing:
            force_setattr(self, "read_hook_file", files.read)
        if self.recognises is _recognise_nothing:
            force_setattr(self, "recognises", files.fits)

    def spellings(self, spec: HookSpec) -> ToolSpellings:
        """How this hook knows the tools of its system, the most usual name of each first."""
        return self.tool_spellings if self.spellings_for is None else self.spellings_for(spec)

    @property
    def answers_elicitations(self) -> bool:
        """Its hooks may answer the server's elicitations for the person. Otherwise they only observe them."""
        return self.has_effect(Effect.ANSWERS_ELICITATION)

    def has_effect(self, effect: Effect) -> bool:
        """A member of its hooks' output does this."""
        return effect in self.output_fields.values()


class Group(Struct, frozen=True):
    """The hooks of one file. They run together, in their dialect's order."""

    dialect: Dialect
    source: str
    hooks: tuple[HookSpec, ...]
    tool_names: ToolNames
    on_failure: OnFailure | None = None
    """This file's setting. It overrides the configuration's."""
    match_all_names: bool = False
    """For hookproxy's own hooks: a matcher is tested on the bare name and on mcp__SERVER__TOOL."""
    managed: bool = False
    """The administrator's hooks. They run last, on the final arguments, and in an environment that the user cannot
    change."""
    plugin: Plugin | None = None
    """The plugin that the file belongs to."""
    names: SeenNames = SeenNames.OWN
    """Which names its hooks see of a tool that they match by its own name and by a familiar one."""
    project: str = ""
    """The project that the configuration names for this file; its hooks see it as their working directory."""
    watched: bool = False
    """It is only watched: it changes nothing. `config/monitor` takes it out of what decides."""

    @property
    def programs(self) -> tuple[HookSpec, ...]:
        """All that runs for it: its hooks, and what lifts denials in a person's place."""
        return (*self.hooks, *self.dialect.resolvers)

    @property
    def consulting_nobody(self) -> Group:
        """The group where a call is only tried or watched: then no program answers in a person's place."""
        return self if not self.dialect.resolvers else replace(self, dialect=replace(self.dialect, resolvers=()))
