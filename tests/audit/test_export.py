"""What is read of an audit file for a collector: each line once and in order, whatever happens to the files."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.audit.append_file import AppendFile
from hookproxy.audit.export import AuditReader, Batch, Position, logs_request
from hookproxy.audit.opened_file import FileOptions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def take(reader: AuditReader) -> list[bytes]:
    """All lines that are there, sent and noted."""
    found: list[bytes] = []
    while (batch := reader.read()) is not None:
        found += batch.lines
        reader.note(batch.after)
    return found


def append(path: Path, *lines: bytes) -> None:
    with path.open("ab") as file:
        file.writelines(line + b"\n" for line in lines)


def test_the_first_time_it_begins_with_the_next_line(path: Path) -> None:
    append(path, b"old")
    reader = AuditReader(str(path))
    assert reader.read() is None
    append(path, b"1", b"2")
    assert take(reader) == [b"1", b"2"]
    assert take(reader) == []


def test_it_may_begin_before_there_is_a_file(path: Path) -> None:
    reader = AuditReader(str(path))
    assert reader.read() is None
    append(path, b"1")
    assert take(reader) == [b"1"]


def test_what_was_not_noted_is_read_again_also_after_a_restart(path: Path) -> None:
    reader = AuditReader(str(path))
    append(path, b"1", b"2")
    first = reader.read(1)
    assert first is not None
    assert first.lines == [b"1"]
    assert take(AuditReader(str(path))) == [b"1", b"2"]
    append(path, b"3")
    assert take(AuditReader(str(path))) == [b"3"]


def test_a_line_without_an_end_waits_for_it(path: Path) -> None:
    reader = AuditReader(str(path))
    path.write_bytes(b"1\n2")
    assert take(reader) == [b"1"]
    append(path, b"2")
    assert take(reader) == [b"22"]


def test_a_long_line_is_one_batch(path: Path) -> None:
    reader, long = AuditReader(str(path)), b"x" * 3_000_000
    append(path, b"1", long, b"2")
    assert take(reader) == [b"1", long, b"2"]


def test_rotated_files_are_read_to_their_ends_and_in_order(path: Path) -> None:
    reader = AuditReader(str(path))
    append(path, b"1")
    assert take(reader) == [b"1"]
    append(path, b"2")
    for number in (1, 2, 3):
        path.rename(f"{path}.{number}")
        append(path, b"in %d" % (number + 1))
    assert take(AuditReader(str(path))) == [b"2", b"in 2", b"in 3", b"in 4"]


def test_a_file_that_was_removed_unsent_is_counted_and_the_next_one_read(path: Path) -> None:
    reader = AuditReader(str(path))
    for number in (1, 2, 3):
        append(path, b"%d" % number)
        path.rename(f"{path}.{number}")
    append(path, b"4")
    for number in (1, 2):
        Path(f"{path}.{number}").unlink()
    assert take(reader) == [b"3", b"4"]
    assert reader.removed == 1


def test_a_file_that_another_program_replaces_or_empties_is_read_from_its_beginning(path: Path) -> None:
    reader = AuditReader(str(path))
    append(path, b"1", b"2")
    assert take(reader) == [b"1", b"2"]
    path.rename(f"{path}-20261123")
    append(path, b"a", b"b", b"c")
    assert take(reader) == [b"a", b"b", b"c"]
    path.write_bytes(b"")
    append(path, b"x")
    assert take(reader) == [b"x"]


def test_numbers_that_begin_anew_lose_nothing(path: Path) -> None:
    Path(f"{path}.7").write_bytes(b"before\n")
    reader = AuditReader(str(path))
    append(path, b"1")
    assert take(reader) == [b"1"]
    Path(f"{path}.7").unlink()
    append(path, b"2")
    assert take(AuditReader(str(path))) == [b"2"]


@pytest.mark.parametrize("note", [b"", b"{", b'{"file":1}', b"null"])
def test_without_a_readable_note_all_is_sent_again_rather_than_lost(path: Path, note: bytes) -> None:
    append(path, b"1")
    path.rename(f"{path}.3")
    append(path, b"2")
    Path(f"{path}.sent").write_bytes(note)
    assert take(AuditReader(str(path))) == [b"1", b"2"]


def test_it_says_how_much_is_unsent(path: Path) -> None:
    reader = AuditReader(str(path))
    assert reader.unsent_bytes == 0
    append(path, b"123", b"456")
    path.rename(f"{path}.1")
    append(path, b"7")
    assert reader.unsent_bytes == 10
    batch = reader.read(1)
    assert batch == Batch([b"123"], Position(1, 4, Path(f"{path}.1").stat().st_ino))
    reader.note(batch.after)
    assert reader.unsent_bytes == 6
    take(reader)
    assert reader.unsent_bytes == 0


@given(steps=st.lists(st.sampled_from(["write", "read", "restart"]), max_size=60))
def test_with_rotation_by_the_writer_each_line_comes_once_and_in_order(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    writer, reader = AppendFile(str(path), FileOptions(limit=100)), AuditReader(str(path))
    written: list[bytes] = []
    found: list[bytes] = []
    for step in [*steps, "read"]:
        if step == "write":
            written.append(b'{"number":%d,"pad":"%b"}' % (len(written), b"x" * 20))
            writer.append(written[-1] + b"\n")
        elif step == "read":
            found += take(reader)
        else:
            reader = AuditReader(str(path))
    writer.close()
    assert found == written


# --- the request ---


def parsed(lines: list[bytes]) -> Any:  # noqa: ANN401  # protobuf has no types
    """As a collector reads it: by OpenTelemetry's own definitions."""
    body = json.loads(logs_request(lines, {"service.name": "hookproxy"}, 1_795_000_000.5))
    definitions = import_module("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    return import_module("google.protobuf.json_format").ParseDict(body, definitions.ExportLogsServiceRequest())


def test_a_request_is_what_a_collector_reads() -> None:
    line = json.dumps(
        {"v": 1, "time": "2026-11-23T08:00:00.250+00:00", "tool": "read", "user": "alice", "result": "ok", "by": ""}
    ).encode()
    (resource,) = parsed([line, b""]).resource_logs
    (name,) = resource.resource.attributes
    assert (name.key, name.value.string_value) == ("service.name", "hookproxy")
    (record,) = resource.scope_logs[0].log_records
    assert record.body.string_value.encode() == line
    assert record.time_unix_nano == 1_795_420_800_250_000_000
    assert record.observed_time_unix_nano == 1_795_000_000_500_000_000
    assert (record.severity_number, record.event_name) == (9, "hookproxy.audit")
    assert {one.key: one.value.string_value for one in record.attributes} == {
        "gen_ai.tool.name": "read",
        "user.name": "alice",
        "hookproxy.result": "ok",
    }


@pytest.mark.parametrize("line", [b"\xff\x00", b'{"time":', b"[1]", b'{"tool":{"a":1},"time":7}', b"[" * 5000])
def test_a_line_that_is_no_record_is_sent_as_text(line: bytes) -> None:
    (record,) = parsed([line]).resource_logs[0].scope_logs[0].log_records
    assert record.body.string_value == line.decode(errors="replace")
    assert record.time_unix_nano == record.observed_time_unix_nano
