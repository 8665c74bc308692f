"""Entries are added to hook files by inserted texts alone, and taken out again byte for byte."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping.hook_entries import insertions, without
from hookproxy.wrapping.syntax_tree import apply_edits

WANTED = json.dumps({"version": 1, "hooks": {"Pre": [{"command": "c"}], "Post": [{"command": "c"}]}}, indent=2)


def added(path: str, text: str, wanted: str = WANTED) -> str:
    """The text with what is wanted; all of it can be taken out again."""
    edits = insertions(path, text, wanted)
    after = apply_edits(text, edits)
    rest = after
    for edit in reversed(edits):
        rest = without(path, rest, edit.text)
    assert rest == text
    return after


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{ }\n",
        '{"hooks":{}}',
        '{"version":1,"hooks":{"Pre":[]}}',
        '{"hooks":{"Pre":[{"command":"a"}]},"model":"x"}',
        '{\n\t"hooks": {\n\t\t"Pre": [\n\t\t\t{"command": "a"}\n\t\t]\n\t}\n}\n',
        '{\r\n    "a": 1\r\n}\r\n',
        '// mine\n{\n  "hooks": {\n    // first\n    "Pre": [ {"command": "a"} ] // last\n  }\n}\n',
    ],
)
def test_members_and_items_follow_those_that_are_there(text: str) -> None:
    after = added("hooks.json", text)
    assert after.replace(" ", "").count('"command":"c"') == 2
    if "//" not in text:
        before, values = json.loads(text), json.loads(after)
        assert {key: values[key] for key in before if key != "hooks"} == {k: before[k] for k in before if k != "hooks"}
        assert values["hooks"]["Pre"] == [*before.get("hooks", {}).get("Pre", []), {"command": "c"}]
    assert ("\r\n" in text) is ("\r\n" in after)
    assert "\n" not in after.replace("\r\n", "") or "\r\n" not in text


@pytest.mark.parametrize(
    "text", ['{"version":2}', '{"hooks":[]}', '{"hooks":{"Pre":{}}}', "[]", "", "{", '{"hooks":1,"hooks":2}']
)
def test_a_file_that_says_something_else_is_not_changed(text: str) -> None:
    with pytest.raises(ConfigError):
        insertions("hooks.json", text, WANTED)


def test_tables_of_toml_follow_at_the_end() -> None:
    wanted = '[[hooks]]\nevent = "Pre"\ncommand = "c"\n'
    text = 'model = "x"\n[[hooks]]\nevent = "Post"\n'
    assert tomllib.loads(added("config.toml", text, wanted))["hooks"][1] == {"event": "Pre", "command": "c"}
    assert tomllib.loads(added("config.toml", "", wanted)) == tomllib.loads(wanted)
    with pytest.raises(ConfigError):
        insertions("config.toml", "hooks = []\n", wanted)


def test_other_forms_are_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError) as error:
        insertions("hooks.yaml", "a: 1\n", "b: 2\n")
    assert "--dry-run" in error.value.hint


def test_what_was_changed_since_is_left_alone() -> None:
    (edit,) = insertions("hooks.json", '{"version":1,"hooks":{"Pre":[]}}', '{"hooks":{"Pre":[{"command":"c"}]}}')
    after = apply_edits('{"version":1,"hooks":{"Pre":[]}}', [edit])
    for changed in (after.replace('"c"', '"d"'), after + after, after.replace("\n]", ', {"command":"e"}\n]')):
        with pytest.raises(ConfigError):
            without("hooks.json", changed, edit.text)
    assert (
        without("hooks.json", after.replace("{", '{"a":1,', 1), edit.text) == '{"a":1,"version":1,"hooks":{"Pre":[]}}'
    )


VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["hooks", "Pre", "a", "ä"]), inner, max_size=3)
), max_leaves=8)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(["hooks", "b", "version"]), VALUES, max_size=3), st.sampled_from([None, 1, "\t"])
)
def test_whatever_is_in_a_file_stays(values: dict[str, object], indent: int | str | None) -> None:
    text = json.dumps(values, indent=indent)
    try:
        after = json.loads(added("hooks.json", text))
    except ConfigError:
        return
    assert {key: after[key] for key in values if key not in ("hooks", "version")} == {
        key: value for key, value in values.items() if key not in ("hooks", "version")
    }
