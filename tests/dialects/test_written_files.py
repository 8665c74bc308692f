"""What an agent's side writes is read by its dialect as the same hooks."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.agent_side import AgentSide, agent_side, names
from hookproxy.dialects.dialect import HookFile, WrittenEntry
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.hook_file import merge
from hookproxy.model.hooks import Event
from tests.support.examples import examples

WITHOUT_TIMEOUTS: Final = ("cascade", "claw", "lime")
"""Systems whose entries have no timeout."""
WITHOUT_MATCHERS: Final = ("cascade", "claw", "code-assist", "lime", "vscode")
"""Systems whose entries, as they are written, are for all tools that their event is about."""
CLOSED: Final = ("claude", "cursor", "goose", "qwen")
"""Systems whose entries can say that a failure refuses the call."""
TOOL_EVENTS: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.PERMISSION_REQUEST)
COMMANDS: Final = st.sampled_from(
    ["./guard.sh", "python3 guard.py --x 'a b'", 'echo "ü" $HOME', "a && b", "x\ny", "echo 🦫\x7f"]
)


def entries_of(side: AgentSide) -> st.SearchStrategy[list[WrittenEntry]]:
    """Entries that `convert` may write: of each event that it has, for all tools or for some."""
    tools = [side.mcp_tool_name("files", "read"), *(one.name for of in side.tool_spellings().values() for one in of)]
    some = st.lists(st.sampled_from(tools), max_size=3, unique=True).map(tuple)
    entry = st.sampled_from([name for name, event in side.events.items() if event is not Event.SESSION_END]).flatmap(
        lambda name: st.builds(
            WrittenEntry,
            st.just(name),
            COMMANDS,
            some if side.events[name] in TOOL_EVENTS and side.name not in WITHOUT_MATCHERS else st.just(()),
            timeout=st.sampled_from([0.0, 5.0, 12.5, 90.0]),
            fails_closed=st.booleans(),
        )
    )
    return st.lists(entry, min_size=1, max_size=4, unique_by=lambda one: (one.event_name, one.command))


@pytest.mark.parametrize("name", [name for name in names() if not DIALECTS[name].executables])
@examples(10)
@given(data=st.data())
def test_written_entries_are_read_back_as_the_same_hooks(name: str, data: st.DataObject) -> None:
    side, dialect = agent_side(name), DIALECTS[name]
    assert side is not None
    entries = data.draw(entries_of(side))
    files = side.write_hook_file(entries)
    read = merge(
        dialect.read_hook_file(HookFile(f"/repo/{path}", text, "/repo", cwd="/repo")) for path, text in files.items()
    )
    assert read.notes == read.remarks == ()
    hooks = {(hook.event_name or str(hook.event), hook.shell or hook.argv[-1]): hook for hook in read.hooks}
    assert hooks.keys() == {(entry.event_name, entry.command) for entry in entries}
    for entry in entries:
        hook = hooks[entry.event_name, entry.command]
        if name not in WITHOUT_TIMEOUTS and (entry.timeout or name != "grok"):  # Grok's defaults differ by event
            assert hook.timeout == (entry.timeout or dialect.default_timeout)
        if side.events[entry.event_name] not in TOOL_EVENTS:
            continue
        assert all(map(hook.matches, entry.names))
        if entry.names or name != "cascade":
            assert hook.matches("another_tool") is not bool(entry.names)
        if name in CLOSED and hook.event is Event.PRE_TOOL_USE:
            assert hook.fails_closed is entry.fails_closed
