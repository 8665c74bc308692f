"""`hide`, `rename` and `description` in `[tools.X]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.load import Loaded, load
from hookproxy.model.aliases import Alias
from hookproxy.model.errors import ConfigError
from hookproxy.model.shown_tools import ShownTool, collision, merged


def loaded(folder: Path, text: str) -> Loaded:
    file = folder / "hookproxy.toml"
    file.write_text(text)
    return load(str(file), (), None, {"HOME": str(folder)}, str(folder))


def test_a_table_says_how_the_agent_sees_a_tool(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        '[tools.a]\nhide = true\n[tools.b]\nrename = "c"\ndescription = "d"\n[tools.e]\nas = "Bash"\n'
        "[tools.f]\nhide = false",
    ).settings
    assert [(one.tool, one.hidden, one.name, one.description) for one in settings.shown_tools] == [
        ("a", True, "", None),
        ("b", False, "c", "d"),
    ]
    assert settings.aliases == (Alias("e", "Bash"),), "tools without `as` keep the names that are recognised"


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ('[tools.a]\nrename = "b"\n[tools.c]\nrename = "b"', "tools.c.rename", "'b' is the name of the tool 'a'"),
        ('[tools.a]\nrename = "b"\n[tools.b]\ndescription = "b"', "tools.a.rename", "'b' is the name of the tool 'b'"),
        ('[tools.a]\nrename = "a"', "tools.a.rename", "is the name that the tool has"),
        ('[tools.a]\nhide = true\nrename = "b"', "tools.a.rename", "does not see a hidden tool"),
        ('[tools.a]\nhide = true\ndescription = "b"', "tools.a.description", "does not see a hidden tool"),
        ('[tools.a]\nrename = "a b"', "tools.a.rename", ""),
        ('[tools.a]\nrename = ""', "tools.a.rename", ""),
        ('[tools.a]\ndescription = ""', "tools.a.description", ""),
        ("[tools.a]\nhide = 1", "tools.a.hide", ""),
        ("[tools.a]\nhidden = true", "tools.a.hidden", "unknown key"),
    ],
)
def test_what_cannot_be_stops_the_start(tmp_path: Path, text: str, where: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert where in str(caught.value)
    assert problem in str(caught.value)


def test_names_may_be_exchanged_and_the_name_of_a_hidden_tool_may_be_used() -> None:
    assert collision([ShownTool("a", name="b"), ShownTool("b", name="a")]) is None
    assert collision([ShownTool("a", hidden=True), ShownTool("b", name="a")]) is None


def test_what_one_of_two_files_hides_stays_hidden() -> None:
    both = merged(
        [ShownTool("a", hidden=True), ShownTool("b", name="x", description="first"), ShownTool("c", name="y")],
        [ShownTool("a", name="z"), ShownTool("b", name="w")],
    )
    assert both == (
        ShownTool("a", hidden=True, name="z"),
        ShownTool("b", name="w", description="first"),
        ShownTool("c", name="y"),
    )
