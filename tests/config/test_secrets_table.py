"""The table `[secrets]` is read; a name, a pattern or a source that cannot be used stops the start with a hint."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hookproxy.config.load import load
from hookproxy.model.errors import ConfigError, UserError
from hookproxy.model.secret_settings import SecretSettings, SecretsOff, SecretsRestore, Source, merged
from hookproxy.secrets import engine


def settings(tmp_path: Path, text: str) -> SecretSettings | None:
    file = tmp_path / "hookproxy.toml"
    file.write_text(text)
    return load(str(file), [], None, {"HOME": str(tmp_path)}, str(tmp_path)).settings.secrets


def test_without_the_table_nothing_is_masked_and_an_empty_one_turns_it_on(tmp_path: Path) -> None:
    assert settings(tmp_path, "") is None
    assert settings(tmp_path, "[secrets]") == SecretSettings()


def test_all_keys_are_read(tmp_path: Path) -> None:
    text = """
[secrets]
allow = ["AKIA.*EXAMPLE"]
skip = ["generic-*", "jwt"]
[secrets.detectors]
acme = "acme-[0-9a-f]{8}"
[secrets.values]
A = "env:ACME_KEY"
B = "file:keys/b"
C = "keyring:the service/me"
D = "command:./pass show 'a b'"
[[secrets.off]]
tool = ["fetch", "time_*"]
[[secrets.restore]]
tool = "deploy"
server = ["ci", "cd"]
rules = ["A", "acme"]
"""
    assert settings(tmp_path, text) == SecretSettings(
        {"acme": "acme-[0-9a-f]{8}"},
        {
            "A": Source("env", "ACME_KEY"),
            "B": Source("file", f"{tmp_path}/keys/b"),
            "C": Source("keyring", "the service/me"),
            "D": Source("command", "./pass show 'a b'", str(tmp_path)),
        },
        ("AKIA.*EXAMPLE",),
        ("generic-api-key", "jwt"),
        (SecretsOff("fetch"), SecretsOff("time_*")),
        (SecretsRestore("deploy", "ci", ("A", "acme")), SecretsRestore("deploy", "cd", ("A", "acme"))),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[secrets.detectors]\nx = "a("', "3: secrets.detectors.x: is not a regular expression: missing )"),
        ('[secrets.detectors]\nx = "(?=a)b"', "secrets.detectors.x: is not a regular expression"),
        ('[secrets.detectors]\nx = "a*"', "matches the empty text"),
        ('[secrets.detectors]\n"a b" = "ab"', "cannot be a name"),
        ('[secrets.detectors]\ngithub-pat = "ab"', "is a rule of gitleaks"),
        ('[secrets.detectors]\nx = "ab"\n[secrets.values]\nx = "env:A"', "is a detector, too"),
        ('[secrets]\nallow = ["a("]', "secrets.allow[0]: is not a regular expression"),
        ('[secrets]\nskip = ["no-such-rule"]', "secrets.skip[0]: no rule of gitleaks is called 'no-such-rule'"),
        ("[[secrets.off]]", "secrets.off[0]: says nothing of what it is about"),
        ("[[secrets.restore]]", "secrets.restore[0].tool"),
        ('[secrets.values]\nx = "env:"', "does not say where the value is"),
        ('[secrets.values]\nx = "keyring:me"', "keyring: needs a service and a user"),
        ('[secrets.values]\nx = "command:a \'b"', "is not a command: no closing quotation"),
        ("[secrets]\noff = true", "secrets.off"),
    ],
)
def test_what_cannot_be_used_stops_the_start(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(tmp_path, f"\n{text}")
    assert problem in raised.value.message
    assert raised.value.hint


def test_without_the_package_for_patterns_the_table_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    engine._engine.cache_clear()
    try:
        with pytest.raises(UserError, match=r"\[secrets\] needs the package google-re2"):
            settings(tmp_path, "[secrets]")
    finally:
        engine._engine.cache_clear()


@pytest.mark.parametrize("value", ["hunter2hunter2", "ghp_hunter2:hunter2", "env:hunter2-hunter2", ":hunter2"])
def test_a_value_in_the_place_of_its_source_is_not_in_the_error(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(tmp_path, f'[secrets.values]\nx = "{value}"')
    assert "hunter2" not in str(raised.value)


def test_the_administrators_table_alone_says_what_is_not_masked_and_who_has_values() -> None:
    user = SecretSettings({"a": "1", "b": "1"}, allow=(".*",), skip=("jwt",), off=(SecretsOff("*"),))
    admin = SecretSettings({"b": "2"}, restore=(SecretsRestore("deploy"),))
    assert merged(user, admin) == SecretSettings({"a": "1", "b": "2"}, restore=(SecretsRestore("deploy"),))
    assert merged(user, None) == user
    assert merged(None, admin) == admin


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("$TOKEN", 'write "env:…", with the name'),
        ("${TOKEN}", 'write "env:…", with the name'),
        ("ENV:TOKEN", 'write "env:…"'),
        ("cmd:pass show x", 'write "command:…"'),
        ("~/token", 'write "file:…"'),
        ("$ecret", 'write "env:VARIABLE", "file:PATH"'),
    ],
)
def test_a_source_in_another_form_is_answered_with_the_one_that_is_meant(
    tmp_path: Path, source: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, f"[secrets.values]\nx = '{source}'\n")
    assert hint in caught.value.hint
    assert source not in f"{caught.value.message}{caught.value.hint}"
