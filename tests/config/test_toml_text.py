"""Settings as lines of hookproxy.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from hookproxy.config.load import KEYS_OF_SETTINGS, load
from hookproxy.config.toml_text import setting_line
from hookproxy.model.settings import Settings

OTHERWISE_SHOWN = ("allow", "ask", "deny", "agent_rules", "aliases", "shown_tools", "limits")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('on_failure = "allow"', "on_failure"),
        ("strict = true", "strict"),
        ("max_depth = 20", "max_depth"),
        ('on_ask_fallback = "allow"', "on_ask_fallback"),
        ('on_ask_fallback = "console"', "console"),
        ('on_ask_fallback = "auto"', "console"),
        ('hooks.notifications = "hold"', "hold_notifications"),
        ('on_ask_fallback = "deny"', "console"),
        ('on_ask_fallback = { command = ["/bin/true", "a \\"b\\""] }', "prompter"),
        ('aliases = "off"', "auto_aliases"),
        ('audit.arguments = "digest"', "audit_arguments"),
        ('audit.arguments = "full"', "audit_arguments"),
        ('audit.calls = "all"', "audit_all_calls"),
        ('audit.redact = ["sk-[a-z]+", "é"]', "audit_redact"),
        ("audit.chain = true", "audit_chain"),
        ("remote.connect_seconds = 2.5", "remote_connect_seconds"),
        ("permissions.hide_denied = false", "hide_denied"),
        (
            'lock = { file = "/nowhere/x.lock", on_change = "ask", create = true, hidden_text = "withhold" }',
            "lock",
        ),
    ],
)
def test_the_line_of_a_setting_is_the_line_that_sets_it(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "hookproxy.toml").write_text(f'{text}\naudit.file = "a"\n', encoding="utf-8")
    loaded = load("hookproxy.toml", [], None, {"HOME": str(tmp_path)}, str(tmp_path))
    assert setting_line(loaded.settings, name) == text


def test_each_setting_is_toml_or_is_not_set() -> None:
    lines = {name: setting_line(Settings(), name) for name in KEYS_OF_SETTINGS if name not in OTHERWISE_SHOWN}
    assert lines["audit_file"] == "audit.file is not set"
    assert lines["strict"] == "strict = false"
    for name, line in lines.items():
        if not line.endswith(" is not set"):
            assert tomllib.loads(line), name
