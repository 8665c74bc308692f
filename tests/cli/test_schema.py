"""`hookproxy schema`: it prints the shipped schemas, which describe hookproxy.toml and gateway.toml."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from hookproxy.cli.schema import GATEWAY_SCHEMA, SCHEMA, main

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*/hookproxy.toml"))
GATEWAYS = sorted((ROOT / "deploy").rglob("gateway*.toml"))


def test_it_prints_the_schema_or_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr() == (SCHEMA.read_text("utf-8"), "")
    assert main(["--path"]) == 0
    assert capsys.readouterr() == (f"{SCHEMA}\n", "")
    assert main(["--gateway"]) == 0
    assert capsys.readouterr() == (GATEWAY_SCHEMA.read_text("utf-8"), "")
    assert main(["--gateway", "--path"]) == 0
    assert capsys.readouterr() == (f"{GATEWAY_SCHEMA}\n", "")


def errors(text: str, file: Path = SCHEMA) -> list[str]:
    """What an editor would mark."""
    schema = json.loads(file.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    found = jsonschema.Draft202012Validator(schema).iter_errors(tomllib.loads(text))
    return [error.message for error in found]


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


@pytest.mark.parametrize("path", GATEWAYS, ids=lambda path: path.name)
def test_every_example_of_a_gateway_is_valid(path: Path) -> None:
    assert errors(path.read_text("utf-8"), GATEWAY_SCHEMA) == []


@pytest.mark.parametrize(
    "text",
    [
        "on_falure = 'deny'",
        "[gateway]\nlissten = ['http://127.0.0.1:1']",
        "[gateway]\ninstance = 'with a space'",
        "[gateway.tls]\nkey = 'key.pem'",
        "[servers.git]\nshare = 'some'",
        "[servers.'a name']\ncommand = ['git']",
        "[servers.git.credentials]\nTOKEN = 'secret'",
        "[[permissions.for]]\ndeny = ['*']",
    ],
)
def test_a_configuration_that_stops_the_gateways_start_is_invalid(text: str) -> None:
    assert errors(text, GATEWAY_SCHEMA)


def test_expressions_of_the_schemas_are_those_of_javascript() -> None:
    assert 'Z"' not in GATEWAY_SCHEMA.read_text("utf-8") + SCHEMA.read_text("utf-8")
    assert errors("[gateway]\ninstance = 'first'", GATEWAY_SCHEMA) == []


@pytest.mark.parametrize("path", [SCHEMA, GATEWAY_SCHEMA], ids=lambda path: path.name)
def test_keys_are_described(path: Path) -> None:
    schema = json.loads(path.read_text("utf-8"))
    for table in [schema, *schema["$defs"].values()]:
        for name, key in table.get("properties", {}).items():
            assert key.get("description"), name
