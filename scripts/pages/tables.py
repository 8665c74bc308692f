"""README's table of the dialects, side by side."""

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
    Event.NOTIFICATION: "a question is shown to the person",
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


def tables() -> str:
    """The table: a column for each dialect, without the `@current` editions."""
    shown = [dialect for name, dialect in DIALECTS.items() if "@" not in name]
    head = [row("", *(f"`{dialect.name}`" for dialect in shown)), row(*["---"] * (len(shown) + 1))]
    events = [row(text, *(names_of(dialect, event) for dialect in shown)) for event, text in EVENT_TEXTS.items()]
    effects = [row(f"**{effect}**", *(members_with(dialect, effect) for dialect in shown)) for effect in Effect]
    return "\n".join([*head, *events, *effects])
