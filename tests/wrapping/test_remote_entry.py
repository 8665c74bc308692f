"""Entries of servers at an address: what they become in each agent's file, what stays, and what cannot be wrapped."""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.wrap_entry import RunOptions
from tests.wrapping.connections import connection, entry_of, variables_of
from tests.wrapping.roundtrip import LAUNCHER, launcher, unwrapped, wrapped

URL: Final = "https://example.com/mcp"
SECRET: Final = "Bearer ghp_abcdef0123456789"


def of(**server: object) -> str:
    return json.dumps({"mcpServers": {"far": server}}, indent=2)


def values(text: str, name: str = "x.json") -> dict[str, object]:
    return entry_of(name, text, "far").values


# --- what an entry becomes ---


def test_an_address_and_its_headers_become_options_and_the_values_go_into_variables() -> None:
    text = wrapped("x.json", of(type="http", url=URL, headers={"Authorization": SECRET, "X-Team": "a"}))
    entry = entry_of("x.json", text, "far")
    assert entry.argv == (
        *LAUNCHER, "run", "--name", "far", "--config", "/etc/hooks.toml", "--url", URL,
        "--header", "Authorization: %{HOOKPROXY_HEADER_AUTHORIZATION}",
        "--header", "X-Team: %{HOOKPROXY_HEADER_X_TEAM}",
    )  # fmt: skip
    assert values(text).keys() == {"type", "command", "args", "env"}
    assert values(text)["type"] == "stdio"
    assert connection(entry) == (URL, [("Authorization", SECRET), ("X-Team", "a")])


def test_a_secret_is_kept_in_one_place_and_on_no_command_line() -> None:
    text = wrapped("x.json", of(url=f"{URL}?key=k0123", headers={"Authorization": SECRET}))
    assert text.count(SECRET) == 1
    assert text.count("k0123") == 1
    assert not any(SECRET in word or "k0123" in word for word in entry_of("x.json", text, "far").argv)


@pytest.mark.parametrize("url", [
    f"{URL}?api_key=1", "https://user:pass@example.com/mcp", f"{URL}#part", "https://hooks.example.com/s/MzY0ZTk5LWQ4ZWEtNGY",
    "https://${HOST}/mcp", "${env:URL}", "https://example.com/{env:TENANT}/mcp",
])  # fmt: skip
def test_an_address_that_may_contain_a_secret_or_the_agents_reference_is_on_no_command_line(url: str) -> None:
    entry = entry_of("x.json", wrapped("x.json", of(url=url)), "far")
    assert entry.argv[-2:] == ("--url", "%{HOOKPROXY_URL}")
    assert variables_of(entry)["HOOKPROXY_URL"] == url


@pytest.mark.parametrize("reference", [
    "Bearer ${TOKEN}", "Bearer ${TOKEN:-none}", "Bearer ${env:TOKEN}", "Bearer ${input:token}", "$TOKEN", "{env:TOKEN}",
    "{file:~/TOKEN}",
])  # fmt: skip
def test_references_of_agents_with_json_stay_as_they_are_and_where_the_agent_replaces_them(reference: str) -> None:
    text = wrapped("x.json", of(url=URL, headers={"Authorization": reference}))
    entry = entry_of("x.json", text, "far")
    assert not any("TOKEN" in word or "$" in word for word in entry.argv)
    assert variables_of(entry)["HOOKPROXY_HEADER_AUTHORIZATION"] == reference


@pytest.mark.parametrize("key", ["url", "serverUrl", "httpUrl", "uri"])
@pytest.mark.parametrize("kind", ["http", "sse", "streamable-http", "streamableHttp", "remote", None])
def test_every_spelling_of_an_address_and_its_type_is_known(key: str, kind: str | None) -> None:
    text = wrapped("x.json", of(**({} if kind is None else {"type": kind}), **{key: URL}))
    assert values(text).get("type") == (None if kind is None else "stdio")
    assert connection(entry_of("x.json", text, "far")) == (URL, [])


def test_keys_that_hold_for_commands_too_stay_where_they_are() -> None:
    kept = {"timeout": 5, "disabled": True, "alwaysAllow": ["a"], "trust": True, "tools": ["*"], "cwd": "/x"}
    new = values(wrapped("x.json", of(url=URL, **kept)))
    before = values(of(url=URL, **kept))
    assert {key: new[key] for key in kept} == {key: before[key] for key in kept}


def test_a_login_of_the_agent_is_left_out_and_a_note_says_so() -> None:
    text = of(url=URL, oauth={"clientId": "x"}, auth={"CLIENT_ID": "x"})
    plan = edit_plan.wrap(edit_plan.read("x.json", text), (), launcher, RunOptions())
    assert not {"oauth", "auth"} & values(plan.text).keys()
    assert plan.notes == ("mcpServers.far: oauth and auth is left out: hookproxy login URL is the login for hookproxy",)


def test_a_header_that_hookproxy_sets_itself_is_left_out_and_a_note_says_so() -> None:
    text = of(url=URL, headers={"Accept": "text/event-stream", "MCP-Protocol-Version": "2025-06-18", "X": "y"})
    plan = edit_plan.wrap(edit_plan.read("x.json", text), (), launcher, RunOptions())
    assert connection(entry_of("x.json", wrapped("x.json", text), "far")) == (URL, [("X", "y")])
    assert plan.notes == tuple(
        f"mcpServers.far: the header {name} is left out: hookproxy sets it itself"
        for name in ("Accept", "MCP-Protocol-Version")
    )


def test_an_entry_that_cannot_be_edited_does_not_keep_others_from_being_wrapped() -> None:
    text = "extensions:\n  a: {uri: https://x}\n  far:\n    uri: https://x\n    headers: &h {a: b}\nother: *h\n"
    plan = edit_plan.wrap(edit_plan.read("config.yaml", text), (), launcher, RunOptions())
    assert [entry.name for entry in plan.changed] == ["a"]
    assert edit_plan.why_not(edit_plan.read("config.yaml", text)) == plan.reasons
    assert list(plan.reasons) == ["extensions.far"]


def test_variables_of_the_entry_stay_and_ours_do_not_replace_them() -> None:
    own = {"A": "b", "HOOKPROXY_HEADER_X": "mine"}
    entry = entry_of("x.json", wrapped("x.json", of(url=URL, headers={"X": "value"}, env=own)), "far")
    assert own.items() <= variables_of(entry).items()
    assert connection(entry) == (URL, [("X", "value")])


def test_an_address_without_tls_on_another_machine_is_used_as_before_with_a_note() -> None:
    text = of(url="http://intranet/mcp")
    plan = edit_plan.wrap(edit_plan.read("x.json", text), (), launcher, RunOptions())
    assert "--allow-http" in entry_of("x.json", plan.text, "far").argv
    assert any("its address is not https" in note for note in plan.notes)
    local = wrapped("x.json", of(url="http://localhost:8080/mcp"))
    assert "--allow-http" not in entry_of("x.json", local, "far").argv


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"url": "wss://x"}, "not one of http or https"),
        ({"url": "https://x y"}, "not one of http or https"),
        ({"url": "unix:///run/mcp.sock"}, "not one of http or https"),
        ({"type": "ws", "url": URL}, "has the type 'ws'"),
        ({"type": "stdio", "url": URL}, "has the type 'stdio'"),
        ({"url": ["a"]}, "an address that is not a string"),
        ({"url": URL, "headers": "a"}, "not a table of names and values"),
        ({"url": URL, "headers": {"a": 1}}, "has a header a that is not a string"),
        ({"url": URL, "headers": {"a b": "c"}}, "has a header with the name 'a b'"),
        ({"url": URL, "headers": {"Host": "internal"}}, "has a header with the name 'Host'"),
        ({"url": URL, "headers": {"a": "b\r\nc: d"}}, "characters that a header cannot contain"),
        ({"url": URL, "headers": {"a": ""}}, "is empty"),
        ({"url": URL, "headers": {"a": "é"}}, "characters that a header cannot contain"),
        ({"url": URL, "headers": {"a": "\ud800"}}, "characters that a header cannot contain"),
        ({"url": URL, "headersHelper": "x.sh"}, "has 'headersHelper'"),
        ({"url": URL, "authProviderType": "google_credentials"}, "has 'authProviderType'"),
        ({"url": URL, "env": "A=b"}, "cannot be edited"),
        ({"url": URL, "x": "y" * 200_000}, "is longer than"),
    ],
)
def test_what_cannot_be_translated_stays_as_it_is_with_a_reason(server: dict[str, object], why: str) -> None:
    plan = edit_plan.wrap(edit_plan.read("x.json", of(**server)), (), launcher, RunOptions())
    assert plan.text == of(**server)
    assert why in plan.reasons["mcpServers.far"]
    with pytest.raises(ConfigError, match="leave this --server out"):
        edit_plan.wrap(edit_plan.read("x.json", of(**server)), ["far"], launcher, RunOptions())


# --- agents with other formats ---


def test_opencode_gets_one_list_and_its_own_word_for_the_type() -> None:
    text = wrapped("x.json", json.dumps({"mcp": {"far": {"type": "remote", "url": URL, "enabled": True}}}))
    new = values(text)
    assert new["type"] == "local"
    assert isinstance(new["command"], list)
    assert "args" not in new
    assert "environment" in new


CODEX: Final = """\
[mcp_servers.far] # mine
url = "https://example.com/mcp" # there
bearer_token_env_var = "TOKEN"
http_headers = { "X-Team" = "a", X-Key = 'k0123456789' }
startup_timeout_sec = 20

[mcp_servers.far.env_http_headers]
X-Other = "OTHER"

[profiles.a]
model = "y"
"""


def test_variables_that_codex_reads_are_passed_on_to_the_command() -> None:
    text = wrapped("config.toml", CODEX)
    new = values(text, "config.toml")
    assert new["env_vars"] == ["OTHER", "TOKEN"]
    assert new["startup_timeout_sec"] == 20
    assert not {"url", "bearer_token_env_var", "http_headers", "env_http_headers"} & new.keys()
    found = connection(entry_of("config.toml", text, "far"), {"TOKEN": "t", "OTHER": "o"})
    expected = {("Authorization", "Bearer t"), ("X-Other", "o"), ("X-Team", "a"), ("X-Key", "k0123456789")}
    assert (found[0], set(found[1])) == (URL, expected)


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\nfar = { url = "https://x" }\n',
        'mcp_servers.far = {url="https://x", enabled = false}',
        '\ufeff[mcp_servers.far]\r\nurl = "https://x"\r\n[mcp_servers.far.http_headers]\r\na = "b"\r\n',
        "[mcp_servers.'far']\n  http_headers.A = '''x'''\n  url = 'https://x'\n  enabled_tools = [ # all\n 'a',]\n",
    ],
)
def test_layouts_of_toml(text: str) -> None:
    assert connection(entry_of("config.toml", wrapped("config.toml", text), "far"))[0] == "https://x"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.far.url = "https://x"\n',
        '[mcp_servers]\nfar.url = "https://x"\n',
        '[mcp_servers.far]\nurl = "https://x"\n[other]\na = 1\n[mcp_servers.far.http_headers]\nb = "c"\n',
    ],
)
def test_a_layout_of_toml_that_cannot_be_edited_is_a_reason(text: str) -> None:
    plan = edit_plan.wrap(edit_plan.read("config.toml", text), (), launcher, RunOptions())
    assert (plan.text, "laid out in a way" in plan.reasons["mcp_servers.far"]) == (text, True)


GOOSE: Final = """\
extensions:
  far:
    type: streamable_http
    uri: https://example.com/mcp
    headers:
      Authorization: Bearer $TOKEN
      X-Literal: k0123 $UNKNOWN
    env_keys: [TOKEN]
    timeout: 300
  other:
    cmd: x
"""


def test_goose_replaces_only_variables_that_the_entry_names() -> None:
    text = wrapped("config.yaml", GOOSE)
    found = connection(entry_of("config.yaml", text, "far"), {"TOKEN": "t"})
    assert found == (URL, [("Authorization", "Bearer t"), ("X-Literal", "k0123 $UNKNOWN")])
    assert values(text, "config.yaml")["type"] == "stdio"
    braces = wrapped("config.yaml", GOOSE.replace("$TOKEN", "${TOKEN}"))
    assert connection(entry_of("config.yaml", braces, "far"), {"TOKEN": "t"}) == found


def test_a_reference_that_the_agent_does_not_replace_is_sent_as_it_is() -> None:
    for name, text in (
        ("config.yaml", "extensions:\n  far:\n    uri: https://x/${A}\n"),
        ("config.toml", '[mcp_servers.far]\nurl = "https://x/${A}"\n'),
    ):
        assert connection(entry_of(name, wrapped(name, text), "far"))[0] == "https://x/${A}"
    known = "extensions:\n  far:\n    uri: https://x/$A\n    envs: {A: b}\n"
    assert connection(entry_of("config.yaml", wrapped("config.yaml", known), "far"))[0] == "https://x/b"


def test_a_header_of_goose_that_mixes_a_secret_and_a_variable_is_a_reason() -> None:
    text = GOOSE.replace("Bearer $TOKEN", "Bearer abc$TOKEN")
    plan = edit_plan.wrap(edit_plan.read("config.yaml", text), (), launcher, RunOptions())
    assert "mixes a secret with a reference" in plan.reasons["extensions.far"]


def test_a_mapping_of_yaml_that_refers_to_another_place_is_a_reason() -> None:
    for text in (
        "extensions:\n  far:\n    uri: https://x\n    headers: &h {a: b}\nother: *h\n",
        "other: &h {a: b}\nextensions:\n  far:\n    uri: https://x\n    headers: *h\n",
    ):
        plan = edit_plan.wrap(edit_plan.read("config.yaml", text), (), launcher, RunOptions())
        assert (plan.text, "cannot be edited" in plan.reasons["extensions.far"]) == (text, True)


# --- changes after wrapping ---


def test_what_changed_since_stays_when_the_entry_is_restored() -> None:
    text = of(url=URL, headers={"Authorization": SECRET}, disabled=False, autoApprove=[])
    new = wrapped("x.json", text)
    new = new.replace('"disabled": false', '"disabled": true').replace('"autoApprove": []', '"autoApprove": ["a"]')
    new = new.replace(SECRET, "Bearer rotated").replace('"disabled": true', '"disabled": true, "timeout": 3')
    after = json.loads(unwrapped("x.json", new))["mcpServers"]["far"]
    headers = {"Authorization": "Bearer rotated"}
    assert after == {"url": URL, "headers": headers, "disabled": True, "autoApprove": ["a"], "timeout": 3}


def test_a_key_that_was_removed_since_stays_away() -> None:
    new = wrapped("x.json", of(url=URL, disabled=False)).replace(',\n      "disabled": false', "")
    assert json.loads(unwrapped("x.json", new))["mcpServers"]["far"] == {"url": URL}


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("https://example.com/mcp", "https://example.com/v2", "its --url or --header"),
        ('"--url"', '"--header", "a: b", "--url"', "its --url or --header"),
        ('"env": {', '"env": {"A": "b", ', "its env"),
        ('"env": {', '"headers": {"A": "b"}, "env": {', "its headers"),
    ],
)
def test_a_change_that_would_be_lost_is_an_error(old: str, new: str, what: str) -> None:
    text = wrapped("x.json", of(url=URL)).replace(old, new, 1)
    with pytest.raises(ConfigError, match=f"was changed since it was wrapped: {what}"):
        unwrapped("x.json", text)


def test_an_entry_that_was_written_by_hand_is_wrapped_and_stays_with_a_reason() -> None:
    text = of(command="hookproxy", args=["run", "--url", URL])
    assert edit_plan.wrapping(entry_of("x.json", text, "far")) is not None
    plan = edit_plan.unwrap(edit_plan.read("x.json", text), ())
    assert (plan.text, "written by hand" in plan.reasons["mcpServers.far"]) == (text, True)


def test_wrapping_again_updates_the_options_and_keeps_the_address() -> None:
    first = wrapped("x.json", of(url=URL, headers={"X": "y"}))
    configuration = edit_plan.read("x.json", first)
    again = edit_plan.wrap(configuration, (), lambda _: ("python3", "-m", "hookproxy"), RunOptions(hooks=("/h",)))
    entry = entry_of("x.json", again.text, "far")
    assert entry.argv[:9] == (
        "python3",
        "-m",
        "hookproxy",
        "run",
        "--name",
        "far",
        "--config",
        "/etc/hooks.toml",
        "--hooks",
    )
    assert connection(entry) == (URL, [("X", "y")])
    assert unwrapped("x.json", again.text) == of(url=URL, headers={"X": "y"})


@pytest.mark.parametrize(
    "kept", ['{"url": "https://x"}, "evil": {"command": "rm"}', '{"url": "https://evil"}', "{", "", "1"]
)
def test_a_planted_text_cannot_change_more_than_its_entry(kept: str) -> None:
    text = json.dumps({"mcpServers": {
        "far": {"command": "hookproxy", "args": ["run", "--url", "https://x"], "env": {"HOOKPROXY_ENTRY": kept}},
        "git": {"command": "git"},
    }})  # fmt: skip
    with pytest.raises(ConfigError):
        unwrapped("x.json", text)
