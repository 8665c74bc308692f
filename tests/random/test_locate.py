"""Every key of a random document is found on its line, and every text can be searched."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.jsonrpc.locate import Location, read


@given(st.text(st.sampled_from("ab\"'{}[]:,=.#\n\\ -&*<|>1"), max_size=60))
@pytest.mark.parametrize("path", ["x.json", "x.toml", "x.yaml"])
def test_no_line_causes_a_defect(path: str, text: str) -> None:
    assert isinstance(read(path, text), Location)


def keys(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Each key of a document, and the name that its line begins with."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{key}.{name}".lstrip("."), json.dumps(name) + ":"
            yield from keys(inner, f"{key}.{name}".lstrip("."))
    if isinstance(value, list):
        for at, inner in enumerate(value):
            yield f"{key}[{at}]", "" if isinstance(inner, dict | list) else json.dumps(inner)
            yield from keys(inner, f"{key}[{at}]")


NAMES = st.text(st.characters(exclude_characters=".[]", codec="utf-8"), min_size=1, max_size=5)
DOCUMENTS = st.dictionaries(
    NAMES,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
        max_leaves=20,
    ),
)


@given(DOCUMENTS)
def test_each_key_of_any_json_document_is_found_on_its_line(document: dict[str, object]) -> None:
    text = json.dumps(document, indent=1)
    place = read("x.json", text)
    for key, begins in keys(document):
        found = place.find(key)
        assert found is not None
        assert text.split("\n")[found.line - 1].lstrip().startswith(begins)
