"""`hookproxy schema`: it prints the shipped schema, which describes hookproxy.toml."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from hookproxy.cli.schema import GATEWAY_SCHEMA, SCHEMA, main

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*/hookproxy.toml"))


def test_it_prints_the_schema_or_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr() == (SCHEMA.read_text("utf-8"), "")
    assert main(["--path"]) == 0
    assert capsys.readouterr() == (f"{SCHEMA}\n", "")


def test_it_prints_the_schema_of_a_gateway_or_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--gateway"]) == 0
    assert capsys.readouterr() == (GATEWAY_SCHEMA.read_text("utf-8"), "")
    assert main(["--gateway", "--path"]) == 0
    assert capsys.readouterr() == (f"{GATEWAY_SCHEMA}\n", "")


@pytest.mark.slow
def test_the_example_of_a_gateway_is_valid_and_a_misspelled_key_is_not() -> None:
    text = (CONFIGS[0].parents[2] / "deploy" / "example" / "gateway.toml").read_text("utf-8")
    assert errors(text, GATEWAY_SCHEMA) == []
    assert errors(text.replace("socket_group", "socket_gruop"), GATEWAY_SCHEMA)
    assert errors("[servers.x]\ncommand = 7\n", GATEWAY_SCHEMA)


@cache
def validator(path: Path) -> jsonschema.Draft202012Validator:
    schema = json.loads(path.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def errors(text: str, path: Path = SCHEMA) -> list[str]:
    """What an editor would mark."""
    return [error.message for error in validator(path).iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.parent.name)
def test_every_example_configuration_is_valid_and_names_the_schema(path: Path) -> None:
    text = path.read_text("utf-8")
    assert errors(text) == []
    directive, _, _ = text.partition("\n")
    assert (path.parent / directive.removeprefix("#:schema ")).resolve() == SCHEMA


@pytest.mark.parametrize(
    "text",
    [
        "on_falure = 'deny'",
        "on_failure = 'perhaps'",
        "[[hooks.PreTool]]",
        "[audit]\nfile = 1",
        "[[use]]\ndialect = 'lime'",
    ],
)
def test_a_configuration_that_stops_the_start_is_invalid(text: str) -> None:
    assert errors(text)


def test_keys_are_described() -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    for table in [schema, *schema["$defs"].values()]:
        for name, key in table.get("properties", {}).items():
            assert key.get("description"), name
