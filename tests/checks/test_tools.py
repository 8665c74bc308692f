"""What `check` says of the names by which hooks know tools."""

from __future__ import annotations

from msgspec.structs import replace

from hookproxy.checks.effective_settings import alias_remarks
from hookproxy.model.aliases import Alias
from hookproxy.model.settings import Settings
from hookproxy.policy.presets import PRESETS


def said(*aliases: Alias) -> list[str]:
    return [one.text for one in alias_remarks(Settings(aliases=aliases))]


def test_names_that_meet_are_told() -> None:
    assert said(Alias("run", "Bash"), Alias("do", "Bash")) == []
    (text,) = said(Alias("run", "write"), Alias("write", "Write"))
    assert text == "hooks know run as write, also the name of another tool: hooks for one run for both"
    assert said(Alias("write", "write")) == []


def test_a_preset_tells_of_the_tools_that_it_leaves_alone() -> None:
    texts = said(*(replace(one, preset="filesystem") for one in PRESETS["filesystem"].tools))
    assert texts[0].startswith(
        "preset filesystem: hooks see these tools of @modelcontextprotocol/server-filesystem under"
    )
    assert "read_multiple_files" in texts[0]
    assert "oldText" in texts[1]
