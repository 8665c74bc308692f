"""The table `[model]`, and which hook files ask its endpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from hookproxy.config.load import Loaded, load
from hookproxy.model.errors import ConfigError
from hookproxy.model.model_endpoint import ModelEndpoint
from hookproxy.model.secret_settings import Source

MODEL: Final = '[model]\napi = "anthropic"\nurl = "https://model.example/"\nname = "small"\n'
HOOKS: Final = {"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "Safe? $ARGUMENTS"}]}]}}


def loaded(folder: Path, text: str, *hooks: str) -> Loaded:
    (folder / "hookproxy.toml").write_text(text)
    (folder / "settings.json").write_text(json.dumps(HOOKS))
    return load(str(folder / "hookproxy.toml"), hooks, None, {"HOME": str(folder)}, str(folder))


def endpoint(folder: Path, more: str = "") -> ModelEndpoint:
    found = loaded(folder, f'[[use]]\nfile = "settings.json"\ndialect = "claude"\n{MODEL}{more}')
    ((spec,),) = [group.hooks for group in found.groups]
    assert spec.model is not None
    return spec.model.endpoint


def test_hooks_of_the_file_ask_its_model(tmp_path: Path) -> None:
    more = 'key = "env:MODEL_KEY"\naliases = { haiku = "tiny" }\n'
    key = Source("env", "MODEL_KEY")
    assert endpoint(tmp_path, more) == ModelEndpoint(
        "anthropic", "https://model.example", "small", key, (("haiku", "tiny"),)
    )


def test_a_file_of_a_key_is_found_from_the_folder_of_the_configuration(tmp_path: Path) -> None:
    assert endpoint(tmp_path, 'key = "file:keys/model"\n').key == Source("file", str(tmp_path / "keys" / "model"))
    assert endpoint(tmp_path, 'key = "file:~/model"\n').key == Source("file", str(tmp_path / "model"))


def test_hooks_of_the_command_line_ask_the_model_of_the_users_file(tmp_path: Path) -> None:
    found = loaded(tmp_path, MODEL, f"claude={tmp_path}/settings.json")
    assert [spec.type for group in found.groups for spec in group.hooks] == ["prompt"]


def test_without_a_model_such_hooks_are_reported_as_before(tmp_path: Path) -> None:
    found = loaded(tmp_path, "", f"claude={tmp_path}/settings.json")
    assert found.groups == ()
    assert any("hookproxy has no model to ask" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('url = "ftp://x"', "model.url: is not the address", "https://host/v1"),
        ('url = "model.example"', "model.url: is not the address", "https://host/v1"),
        ('url = "https://x:0/"', "model.url: is not the address", ""),
        ('url = "https://x:y/"', "model.url: is not the address", ""),
        ('url = "https://a:b@x"', "model.url: contains a user name or a password", "env:NAME"),
        ('url = "https://x/?key=1"', "model.url: has more than a path", ""),
        ('url = "https://x/a b"', "model.url: contains blanks", ""),
        ('url = "http://model.example"', "model.url: would send events and the key unencrypted", "https://"),
        ('url = "http://10.0.0.1:8000"', "model.url: would send events and the key unencrypted", "https://"),
        (
            'url = "https://x"\nkey = "sk-secret"',
            "model.key: does not say where the value is",
            '"env:VARIABLE" or "file',
        ),
        ('url = "https://x"\nkey = "env:sk-secret"', "model.key: env: is followed by the name", '"file:PATH"'),
        ('url = "https://x"\nkey = "command:pass x"', "model.key: does not say where", '"env:VARIABLE"'),
    ],
)
def test_an_endpoint_that_cannot_be_asked_safely_stops_the_start(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, f'[model]\napi = "openai"\nname = "small"\n{text}\n')
    assert message in raised.value.message
    assert hint in raised.value.hint
    assert "secret" not in raised.value.message + raised.value.hint


@pytest.mark.parametrize("url", ["http://localhost:11434/v1", "http://127.0.0.1:8000", "http://[::1]:8000/v1/"])
def test_a_server_on_this_machine_may_be_asked_without_tls(tmp_path: Path, url: str) -> None:
    loaded(tmp_path, f'[model]\napi = "openai"\nname = "small"\nurl = "{url}"\n')


@pytest.mark.parametrize("text", ['api = "other"', "name = 7", 'models = "x"', ""])
def test_a_table_with_other_keys_or_values_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        loaded(tmp_path, f'[model]\nurl = "https://x"\n{text}\n')


def test_a_model_without_a_key_is_told_so_unless_it_is_on_this_machine(tmp_path: Path) -> None:
    (remark,) = [remark for remark in loaded(tmp_path, MODEL).remarks if "key" in remark]
    assert remark.endswith('model: no key is sent to https://model.example: key = "env:NAME" names one')
    assert not loaded(tmp_path, f'{MODEL}key = "env:MODEL_KEY"\n').remarks
    assert not loaded(tmp_path, MODEL.replace("https://model.example/", "http://localhost:8080/")).remarks
