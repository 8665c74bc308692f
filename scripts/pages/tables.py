"""README's table of the dialects, side by side."""

from hookproxy.dialects.dialect import Dialect, Effect
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event

OCCASIONS = {
    Event.PRE_TOOL_USE: "before a call",
    Event.POST_TOOL_USE: "after a call that succeeded",
    Event.POST_TOOL_USE_FAILURE: "after a call that failed",
    Event.SESSION_START: "the agent has connected",
    Event.SESSION_END: "the agent has gone",
    Event.PERMISSION_REQUEST: "a person is to be asked",
    Event.PERMISSION_DENIED: "a call was refused",
    Event.STOP: "the agent cancels a call",
    Event.ERROR_OCCURRED: "an error came, or no answer",
    Event.ELICITATION: "the server asks the person",
    Event.ELICITATION_RESULT: "the person has answered",
    Event.NOTIFICATION: "the person is shown a question",
    Event.USER_INPUT: "the person is waited for",
}


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def spelled(dialect: Dialect, event: Event) -> str:
    """The dialect's own names of an event; of the two that Copilot has, both."""
    return ", ".join(f"`{name}`" for name, each in dialect.events.items() if each is event)


def said(dialect: Dialect, effect: Effect) -> str:
    """The members of an answer that have this effect, without the object that they stand in."""
    names = dict.fromkeys(name.rpartition(".")[2] for name, each in dialect.output_fields.items() if each is effect)
    return ", ".join(f"`{name}`" for name in names)


def tables() -> str:
    """The table: a column for each dialect, its newest edition aside."""
    shown = [dialect for name, dialect in DIALECTS.items() if "@" not in name]
    head = [row("", *(f"`{dialect.name}`" for dialect in shown)), row(*["---"] * (len(shown) + 1))]
    events = [row(text, *(spelled(dialect, event) for dialect in shown)) for event, text in OCCASIONS.items()]
    effects = [row(f"**{effect}**", *(said(dialect, effect) for dialect in shown)) for effect in Effect]
    return "\n".join([*head, *events, *effects])
