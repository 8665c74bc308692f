"""Any configuration: wrapped and unwrapped, it is the same to the byte, and wrapping changes nothing else."""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.json_file import read
from hookproxy.wrapping.syntax_tree import MappingNode, plain_value
from tests.wrapping.roundtrip import OPTIONS, launcher, unwrapped

BLANKS: Final = st.sampled_from(["", " ", "\n", "\r\n\t", " // c,]}\n", '/* "{[ */', "\n    "])
WORDS: Final = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
ARGS: Final = st.lists(WORDS | st.sampled_from(["--", "run", "-m", "hookproxy"]), max_size=4)
STARTED: Final = st.fixed_dictionaries(
    {"command": WORDS.filter(bool)}, optional={"args": ARGS, "env": VALUES, "disabled": st.booleans()}
)
SERVERS: Final = st.dictionaries(WORDS, STARTED | st.just({"url": "https://x"}), min_size=1, max_size=3)


@st.composite
def spelled(draw: st.DrawFn, value: Any) -> str:  # noqa: ANN401  # any JSON
    """The value as somebody may have written it, with blanks, comments, and commas too many."""

    def blank() -> str:
        return draw(BLANKS)

    def text(inner: Any) -> str:  # noqa: ANN401  # any JSON
        if isinstance(inner, dict):
            parts = [f"{blank()}{text(key)}{blank()}:{blank()}{text(each)}{blank()}" for key, each in inner.items()]
            return "{" + joined(parts) + "}"
        if isinstance(inner, list):
            return "[" + joined([f"{blank()}{text(each)}{blank()}" for each in inner]) + "]"
        return json.dumps(inner, ensure_ascii=draw(st.booleans()))

    def joined(parts: list[str]) -> str:
        return ",".join(parts) + (draw(st.sampled_from(["", ","])) if parts else "") + blank()

    return draw(st.sampled_from(["", "\ufeff"])) + blank() + text(value) + blank()


@given(st.data(), SERVERS, VALUES)
def test_unwrapping_restores_every_byte(data: st.DataObject, servers: dict[str, Any], other: object) -> None:
    items = data.draw(st.permutations([("mcpServers", servers), ("other", other)]))
    text = data.draw(spelled(dict(items)))
    found = edit_plan.read("x.json", text)
    assert plain_value(found.tree) == plain_value(read("x.json", json.dumps(dict(items))))
    once = edit_plan.wrap(found, (), launcher, OPTIONS)
    again = edit_plan.read("x.json", once.text)
    assert edit_plan.wrap(again, (), launcher, OPTIONS).text == once.text
    lost = [
        name
        for name, server in servers.items()
        if name.startswith("-") and "command" in server and "args" not in server
    ]
    if lost:  # an empty list is left
        back = plain_value(edit_plan.read("x.json", unwrapped("x.json", once.text)).tree)
        for name in lost:
            servers[name]["args"] = []
        assert back == plain_value(read("x.json", json.dumps(dict(items))))
    else:
        assert unwrapped("x.json", once.text) == text


@given(st.text(alphabet='{}[]",:/*\\\n a1tu\ufeff', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = read("x.json", text)
    except ConfigError:
        return
    assert isinstance(tree, MappingNode)
    assert text[tree.start] == "{"
    assert text[tree.end - 1] == "}"


@given(VALUES)
def test_plain_json_is_read_as_in_python(value: object) -> None:
    def lexemes(one: object) -> object:
        if isinstance(one, dict):
            return {key: lexemes(each) for key, each in one.items()}
        if isinstance(one, list):
            return [lexemes(each) for each in one]
        return ("number", str(one)) if isinstance(one, int) and not isinstance(one, bool) else one

    assert plain_value(read("x.json", json.dumps({"a": value}))) == {"a": lexemes(value)}
