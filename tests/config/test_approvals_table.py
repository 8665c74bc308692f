"""The table [approvals]: mistakes are told with place and hint, and no secret is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.load import Loaded, load
from hookproxy.config.toml_text import ask_fallback, setting_line
from hookproxy.model.approval_settings import ApprovalSettings, WebhookSettings
from hookproxy.model.errors import ConfigError
from hookproxy.model.secret_settings import Source

HOOK = '[approvals.webhook]\nurl = "https://chat.example/hook"\nsecret = "env:NAME"\n'


def loaded(folder: Path, text: str) -> Loaded:
    config = folder / "hookproxy.toml"
    config.write_text(text, "utf-8")
    return load(str(config), [], None, {"HOME": str(folder)}, str(folder))


def test_nothing_is_told_by_default(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "").settings
    assert settings.approvals == ApprovalSettings()
    assert setting_line(settings, "approvals") == "approvals is not set"


def test_all_keys_are_read(tmp_path: Path) -> None:
    more = 'listen = "[::1]:8651"\npublic_url = "https://tunnel.example/a/"\n[approvals]\ndesktop = true\n'
    settings = loaded(tmp_path, HOOK.replace("env:NAME", "file:key") + more).settings
    hook = WebhookSettings(
        "https://chat.example/hook",
        Source("file", str(tmp_path / "key")),
        "[::1]:8651",
        "https://tunnel.example/a",
    )
    assert settings.approvals == ApprovalSettings(desktop=True, webhook=hook)
    line = setting_line(settings, "approvals")
    assert "desktop = true" in line
    assert f'secret = "file:{tmp_path}/key"' in line


def test_this_machine_needs_no_https(tmp_path: Path) -> None:
    text = HOOK.replace("https://chat.example", "http://127.0.0.1:8000") + 'public_url = "http://localhost:1/x"'
    hook = loaded(tmp_path, text).settings.approvals.webhook
    assert hook is not None
    assert (hook.url, hook.listen) == ("http://127.0.0.1:8000/hook", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("text", "key", "why"),
    [
        (HOOK.replace("https:", "http:"), "approvals.webhook.url", "unencrypted"),
        (HOOK.replace("https://chat.example/hook", "chat"), "approvals.webhook.url", "not an address"),
        (HOOK.replace("https://", "https://me:hunter2@"), "approvals.webhook.url", "credentials"),
        (HOOK.replace("https:", "file:"), "approvals.webhook.url", "begins with file://"),
        (HOOK.replace("env:NAME", "hunter2"), "approvals.webhook.secret", "does not say where"),
        (HOOK.replace("env:NAME", "env:hunter2!"), "approvals.webhook.secret", "name of a variable"),
        (f'{HOOK}listen = "127.0.0.1"', "approvals.webhook.listen", "is not HOST:PORT"),
        (f'{HOOK}listen = "127.0.0.1:99999"', "approvals.webhook.listen", "is not HOST:PORT"),
        (f'{HOOK}listen = "0.0.0.0:80"', "approvals.webhook.listen", "not an address of this machine alone"),
        (f'{HOOK}public_url = "http://tunnel.example"', "approvals.webhook.public_url", "unencrypted"),
        (f'{HOOK}public_url = "https://tunnel.example/?a=b"', "approvals.webhook.public_url", "more than a path"),
        (f'on_ask_fallback = "allow"\n{HOOK}', "approvals.webhook", "would approve each call"),
        ('[approvals.webhook]\nurl = "https://x"', "approvals.webhook", "secret"),
        ("[approvals]\ndesktops = true", "approvals.desktops", "unknown key"),
        ('[approvals]\ndesktop = "yes"', "approvals.desktop", ""),
    ],
)
def test_a_mistake_is_told_with_its_key_and_without_a_secret(tmp_path: Path, text: str, key: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    error = f"{caught.value}"
    assert key in error
    assert why in error
    assert "hunter2" not in error


def test_who_asks_is_said_in_words(tmp_path: Path) -> None:
    assert ask_fallback(loaded(tmp_path, HOOK).settings).startswith(
        "if the agent cannot ask, the webhook chat.example asks; without it, hookproxy console or hookproxy top asks"
    )
    assert ask_fallback(loaded(tmp_path, f'on_ask = "console"\n{HOOK}').settings).startswith("the webhook chat.example")
    assert "a notification says so" in ask_fallback(loaded(tmp_path, "[approvals]\ndesktop = true").settings)
