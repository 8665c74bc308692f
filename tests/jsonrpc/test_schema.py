"""Whether rewritten arguments fit the input schema of the tool."""

from __future__ import annotations

import pytest

from hookproxy.jsonrpc.schema import mismatch

SCHEMA = (
    b'{"type":"object","properties":{"path":{"type":"string"},"o":{"properties":{"n":{"type":"integer"}}}},'
    b'"required":["path"]}'
)


def test_arguments_that_fit_have_no_mismatch() -> None:
    assert mismatch(SCHEMA, b'{"path":"x","o":{"n":1},"other":true}') == ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (b'{"path":7}', "path: 7 is not of type 'string'"),
        (b"{}", "'path' is a required property"),
        (b'{"path":"x","o":{"n":"1"}}', "o.n: '1' is not of type 'integer'"),
    ],
)
def test_a_mismatch_names_the_field(arguments: bytes, named: str) -> None:
    assert mismatch(SCHEMA, arguments) == named


@pytest.mark.parametrize(
    "schema",
    [
        b'{"type":7}',
        b'{"$ref":"https://example.invalid/schema.json"}',
        b'{"$ref":"#/$defs/missing"}',
        b'{"properties":{"a":{"$ref":"file:///etc/passwd"}}}',
        b"true",
        b"{}",
    ],
)
def test_a_schema_that_cannot_be_used_rejects_nothing_and_fetches_nothing(schema: bytes) -> None:
    assert mismatch(schema, b'{"a":1}') == ""


@pytest.mark.parametrize(
    "schema",
    [
        b'{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string"}}}',
        b'{"$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s"}}}',
        b'{"$schema":"https://example.invalid/unknown","properties":{"a":{"type":"string"}}}',
    ],
)
def test_schemas_of_any_draft_and_with_references_of_their_own_are_used(schema: bytes) -> None:
    assert mismatch(schema, b'{"a":"x"}') == ""
    assert mismatch(schema, b'{"a":1}').startswith("a: ")


@pytest.mark.parametrize(
    "schema",
    [
        b"7",
        b"[]",
        b'{"properties":{"a":{"pattern":"("}}}',
        b'{"properties":{"a":%b}}' % (b'{"items":' * 900 + b"{}" + b"}" * 900),
        b'{"$ref":"#"}',
        b'{"properties":{"a":{"type":"integer","multipleOf":0}}}',
    ],
)
def test_no_schema_of_a_server_causes_a_crash(schema: bytes) -> None:
    assert isinstance(mismatch(schema, b'{"a":"x"}'), str)


@pytest.mark.parametrize(
    "arguments",
    [b'{"n":1e400}', b'{"n":%b}' % (b"9" * 5000), b'{"n":%b}' % (b"[" * 900 + b"]" * 900), b'{"n":0.1}'],
)
def test_no_arguments_cause_a_crash(arguments: bytes) -> None:
    schema = b'{"properties":{"n":{"multipleOf":0.01}}}'
    assert isinstance(mismatch(schema, arguments), str)


def test_a_mismatch_names_the_field_as_its_reader_knows_it() -> None:
    names = {"path": "file_path", "o": "options"}
    assert mismatch(SCHEMA, b'{"path":7}', names) == "file_path: 7 is not of type 'string'"
    assert mismatch(SCHEMA, b"{}", names) == "'file_path' is a required property"
    assert mismatch(SCHEMA, b'{"path":"x","o":{"n":"1"}}', names) == "options.n: '1' is not of type 'integer'"
    assert mismatch(SCHEMA, b'{"path":"x"}', names) == ""
