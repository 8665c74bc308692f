"""A value of `[secrets]` that cannot be had and a misspelled rule are named before a run fails or restores nothing."""

from __future__ import annotations

from pathlib import Path

from hookproxy.checks.secret_entries import missing_values, unknown_rules
from hookproxy.model.approval_settings import ApprovalSettings, WebhookSettings
from hookproxy.model.secret_settings import SecretSettings, SecretsRestore, Source
from hookproxy.model.settings import Settings

SOURCES = {"key": Source("env", "KEY"), "asked": Source("command", "false")}


def test_a_variable_that_is_not_set_is_named_and_no_command_runs() -> None:
    (text,) = missing_values(Settings(secrets=SecretSettings(values=SOURCES)), {})
    assert text == "secrets.values.key: the environment variable KEY is not set: where this is so, a run does not start"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = Source("file", str(tmp_path / "key"))
    (text,) = missing_values(Settings(secrets=SecretSettings(values={"key": source})), {})
    assert f"{tmp_path}/key cannot be read" in text


def test_a_value_that_is_there_is_not_mentioned() -> None:
    assert not list(missing_values(Settings(secrets=SecretSettings(values=SOURCES)), {"KEY": "correct-horse-battery"}))
    assert not list(missing_values(Settings(), {}))


def test_the_secret_of_a_webhook_that_is_not_set_is_named() -> None:
    webhook = WebhookSettings("https://chat.example/", Source("env", "CHAT"))
    (text,) = missing_values(Settings(approvals=ApprovalSettings(webhook=webhook)), {})
    assert text.startswith("approvals.webhook.secret: the environment variable CHAT is not set")


def test_a_rule_that_nothing_has_is_named_with_what_may_be_meant() -> None:
    restore = (SecretsRestore("deploy", "*", ("github-patt", "key", "ours", "aws-*")),)
    (text,) = unknown_rules(SecretSettings({"ours": "x+"}, SOURCES, restore=restore))
    assert text == "secrets.restore: no rule, detector or value is called 'github-patt' (did you mean 'github-pat'?)"
    assert not list(unknown_rules(None))
