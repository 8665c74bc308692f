"""The tables of all dialects: a list of them, and what their events and their hooks' output are called."""

import re
from pathlib import Path

from hookproxy.dialects.dialect import Dialect, Effect
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event

EVENT_TEXTS = {
    Event.PRE_TOOL_USE: "before a call",
    Event.PRE_MCP_TOOL_CALL: "a call is about to be sent to the server",
    Event.POST_TOOL_USE: "after a call that succeeded",
    Event.POST_TOOL_USE_FAILURE: "after a call that failed",
    Event.SESSION_START: "the agent has connected",
    Event.SESSION_END: "the agent has disconnected",
    Event.PERMISSION_REQUEST: "a person is about to be asked",
    Event.PERMISSION_DENIED: "a call was refused",
    Event.STOP: "the agent cancels a call",
    Event.ERROR_OCCURRED: "a call failed or got no response",
    Event.ELICITATION: "the server asks the person",
    Event.ELICITATION_RESULT: "the person has answered",
    Event.NOTIFICATION: "a person is asked for approval, or by the server",
    Event.USER_INPUT: "a call waits for the person",
}


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def names_of(dialect: Dialect, event: Event) -> str:
    """The dialect's own names of an event; Copilot has two for most."""
    return ", ".join(f"`{name}`" for name, each in dialect.events.items() if each is event)


def members_with(dialect: Dialect, effect: Effect) -> str:
    """The members of a hook's output that have this effect, without the object that contains them."""
    names = dict.fromkeys(name.rpartition(".")[2] for name, each in dialect.output_fields.items() if each is effect)
    return ", ".join(f"`{name}`" for name in names)


PAGES = Path(__file__).resolve().parents[2] / "docs" / "dialects"

EVENT_COLUMNS = {
    "before a call": (Event.PRE_TOOL_USE, Event.PRE_MCP_TOOL_CALL),
    "after a success": (Event.POST_TOOL_USE,),
    "after a failure": (Event.POST_TOOL_USE_FAILURE, Event.ERROR_OCCURRED),
    "refused, cancelled": (Event.PERMISSION_DENIED, Event.STOP),
    "a person is asked": (Event.PERMISSION_REQUEST, Event.NOTIFICATION, Event.USER_INPUT),
    "the server asks": (Event.ELICITATION, Event.ELICITATION_RESULT),
    "session": (Event.SESSION_START, Event.SESSION_END),
}
EFFECT_COLUMNS = {
    "decides": (Effect.DECIDES,),
    "reason": (Effect.REASON,),
    "rewrites": (Effect.REWRITES, Effect.REWRITES_META),
    "tells the model": (Effect.TELLS_MODEL,),
    "replaces or hides output": (Effect.REPLACES, Effect.HIDES),
    "tells the person": (Effect.TELLS_PERSON,),
    "stops the agent": (Effect.DENIES_AND_STOPS,),
    "other": (
        Effect.ALLOWS_FOR_SESSION,
        Effect.REPEATS_CALL,
        Effect.ANSWERS_ELICITATION,
        Effect.SETS_VARIABLES,
    ),
    "without effect": (Effect.NONE,),
}


def shown() -> list[Dialect]:
    """All dialects without the `@current` editions."""
    return [dialect for name, dialect in DIALECTS.items() if "@" not in name]


def systems() -> str:
    """Each system, its dialect, and the folders in which its files are recognised."""
    rows = [row("system", "dialect", "its hook files are in"), row(*["---"] * 3)]
    for dialect in shown():
        page = PAGES / f"{dialect.name}.md"
        text = page.read_text("utf-8") if page.exists() else dialect.name
        title = re.sub(r"^# [^:]*: ", "", text.partition("\n")[0])
        editions = [name for name in DIALECTS if name.startswith(f"{dialect.name}@")]
        names = [f"[`{dialect.name}`]({dialect.name}.md)", *(f"`{name}`" for name in editions)]
        folders = ", ".join(f"`{folder}`" for folder in dialect.folders)
        rows.append(row(title, ", ".join(names), folders))
    return "\n".join(rows)


NAMED = 4
"""The systems that README.md names before "and N other agents"."""


def counted(text: str) -> str:
    """README.md with the number of systems, wherever it says how many there are."""
    count = len(shown())
    text = re.sub(r"\band \d+ other agents\b", f"and {count - NAMED} other agents", text)
    return re.sub(r"\[\d+ systems\]", f"[{count} systems]", text)


def followed() -> str:
    """A row for each dialect: the document or the source that it follows, and as of when."""
    rows = [row("dialect", "follows", "as of"), row(*["---"] * 3)]
    for name, dialect in DIALECTS.items():
        source, _, date = dialect.described_by.partition(" as of ")
        rows.append(row(f"`{name}`", source.rstrip(","), date))
    return "\n".join(rows)


def events() -> str:
    """A row for each dialect: what it calls the events that can occur behind MCP."""
    rows = [row("", *EVENT_COLUMNS), row(*["---"] * (len(EVENT_COLUMNS) + 1))]
    for dialect in shown():
        cells = [", ".join(filter(None, (names_of(dialect, one) for one in each))) for each in EVENT_COLUMNS.values()]
        rows.append(row(f"[`{dialect.name}`]({dialect.name}.md)", *cells))
    return "\n".join(rows)


def fields() -> str:
    """A row for each dialect: the members of its hooks' output, by what they do."""
    rows = [row("", *EFFECT_COLUMNS), row(*["---"] * (len(EFFECT_COLUMNS) + 1))]
    for dialect in shown():
        cells = [", ".join(filter(None, (members_with(dialect, e) for e in each))) for each in EFFECT_COLUMNS.values()]
        rows.append(row(f"[`{dialect.name}`]({dialect.name}.md)", *cells))
    return "\n".join(rows)
