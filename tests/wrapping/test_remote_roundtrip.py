"""Any entry of a server at an address: wrapped, it connects to the same place; unwrapped, it has the same bytes."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

import pytest
import yaml
from hypothesis import assume, event, given
from hypothesis import strategies as st

from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.syntax_tree import quoted
from hookproxy.wrapping.wrap_entry import RunOptions
from tests.wrapping.connections import connection, entry_of
from tests.wrapping.roundtrip import launcher, unwrapped

URLS: Final = st.sampled_from([
    "https://example.com/mcp", "https://example.com/mcp?key=k0123&b=%20", "http://localhost:3000/", "https://[::1]/x",
    "http://intranet/mcp", "https://user:pass@example.com/", "https://example.com/é/0123456789abcdef", "https://x/%{A}",
])  # fmt: skip
NAMES: Final = st.sampled_from(["Authorization", "X-Key", "x-key", "X_KEY", "Cookie", "$"])
WORDS: Final = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029"), max_size=12)
VALUES: Final = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12) | st.sampled_from(
    ["Bearer ${TOKEN}", "<HOOKPROXY_URL>", "<A>", 'a"b\\c', "# x", "a: b", "%{A}", "b"]
)
HEADERS: Final = st.dictionaries(NAMES, VALUES, max_size=3)
EXTRAS: Final[Any] = st.dictionaries(
    st.sampled_from(["timeout", "disabled", "tools", "description", "env"]),
    st.integers(0, 9) | st.booleans() | st.lists(WORDS, max_size=2) | WORDS,
    max_size=3,
).map(lambda extras: {**extras, "env": {"A": "b", "HOOKPROXY_URL": "x"}} if "env" in extras else extras)
ORDERS: Final = st.randoms(use_true_random=False)


def check(name: str, text: str, url: str, headers: dict[str, str]) -> None:
    configuration = edit_plan.read(name, text)
    plan = edit_plan.wrap(configuration, (), launcher, RunOptions(config="/c.toml"))
    assert unwrapped(name, plan.text) == text
    if plan.reasons:  # only for what the layout or the values make ambiguous
        event("not wrapped")
        assert entry_of(name, plan.text, "far").values == entry_of(name, text, "far").values
        return
    entry = entry_of(name, plan.text, "far")
    assert connection(entry) == (url, list(headers.items()))
    assert not any(value in word for value in headers.values() for word in entry.argv if len(value) > 6)
    again = edit_plan.wrap(edit_plan.read(name, plan.text), (), launcher, RunOptions(hooks=("/h.json",)))
    assert unwrapped(name, plan.text) == unwrapped(name, again.text) == text


def members(url: str, key: str, headers: dict[str, str], extras: dict[str, Any], random: Random) -> dict[str, Any]:
    found = [(key, url), ("type", "http"), *([("headers", headers)] if headers else []), *extras.items()]
    random.shuffle(found)
    return dict(found)


@given(
    URLS, HEADERS, EXTRAS, ORDERS, st.sampled_from([None, 0, 2, "\t"]), st.sampled_from(["", " // mine", " /* , */"])
)
def test_json(
    url: str, headers: dict[str, str], extras: dict[str, Any], order: Random, indent: int | str | None, comment: str
) -> None:
    server = members(url, "url", headers, extras, order)
    text = json.dumps({"mcpServers": {"far": server, "git": {"command": "g"}}}, indent=indent, ensure_ascii=False)
    if comment and indent is not None:
        text = text.replace("\n", f"{comment}\r\n")
    check("x.json", text, url, headers)


@given(URLS, HEADERS, EXTRAS, ORDERS, st.sampled_from([True, False, None]), st.sampled_from(["'", '"', None]))
@pytest.mark.slow
def test_yaml(
    url: str, headers: dict[str, str], extras: dict[str, Any], order: Random, flow: bool | None, style: str | None
) -> None:
    if "env" in extras:
        extras = {**extras, "envs": extras.pop("env")}
    assume(not any("$" in value for value in headers.values()))
    server = members(url, "uri", headers, extras, order)
    text = yaml.dump({"extensions": {"far": server, "git": {"cmd": "g"}}, "z": 1}, Dumper=yaml.SafeDumper,
                     default_flow_style=flow, default_style=style, allow_unicode=True, sort_keys=False)  # fmt: skip
    check("config.yaml", text, url, headers)


@given(URLS, HEADERS, EXTRAS, ORDERS, st.sampled_from(["inline", "tables", "dotted"]), st.sampled_from(["", " # mine"]))
def test_toml(
    url: str, headers: dict[str, str], extras: dict[str, Any], order: Random, style: str, comment: str
) -> None:
    server = members(url, "url", {}, extras, order)
    tables = {key: value for key, value in (("http_headers", headers), ("env", server.pop("env", None))) if value}
    plain = [f"{key} = {spelled(value)}" for key, value in server.items()]
    inline = [f"{key} = {spelled(value)}" for key, value in tables.items()]
    if style == "inline":
        text = f"[mcp_servers]\nfar = {{ {', '.join((*plain, *inline))} }}{comment}\n"
    elif style == "dotted":
        dotted = [
            f"{key}.{spelled(name)} = {spelled(value)}" for key, one in tables.items() for name, value in one.items()
        ]
        text = "".join(f"{line}{comment}\n" for line in ("[mcp_servers.far]", *dotted, *plain))
    else:
        text = "".join(f"{line}{comment}\n" for line in ("[mcp_servers.far]", *plain))
        for key, one in tables.items():
            lines = (
                f"[mcp_servers.far.{key}]",
                *(f"{spelled(name)} = {spelled(value)}" for name, value in one.items()),
            )
            text += "".join(f"{line}{comment}\n" for line in lines)
    check("config.toml", f'model = "x"\n{text}[mcp_servers.git]\ncommand = "g"\n', url, headers)


def lines_of(table: dict[str, str]) -> list[str]:
    return [f"{spelled(name)} = {spelled(value)}" for name, value in table.items()]


def spelled(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{spelled(key)} = {spelled(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(spelled, value)) + "]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)
