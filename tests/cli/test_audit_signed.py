"""`hookproxy audit verify` and `receipt` on a signed audit, and the program with which others verify a receipt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hookproxy.cli.audit import main
from hookproxy.model.errors import UserError
from tests.support.receipt_verifier import PROGRAM, VERIFIER
from tests.support.signed_audit import KEY, SignedAudit, rechained


@pytest.fixture
def audit(tmp_path: Path) -> SignedAudit:
    one = SignedAudit(tmp_path)
    one.write(6)
    one.seal()
    one.write(3)
    one.seal()
    return one


def verify(audit: SignedAudit, *options: str) -> int:
    return main(["verify", str(audit.file), *options])


def test_verify_says_who_has_signed_how_much(audit: SignedAudit, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(audit, "--public-key", str(audit.public_key)) == 0
    out = capsys.readouterr().out
    assert "signed by SHA256:" in out
    assert "10 lines, 2 checkpoints, the last one number 2" in out
    assert "were not verified" not in out
    assert verify(audit) == 0
    assert "the signatures were not verified: --public-key FILE names the key" in capsys.readouterr().out


def test_verify_finds_a_cut_end_and_says_so_in_json(audit: SignedAudit, capsys: pytest.CaptureFixture[str]) -> None:
    whole = audit.copy.read_bytes()
    audit.put(audit.lines()[:-1])
    assert verify(audit) == 1
    assert "lines are missing" in capsys.readouterr().out
    assert verify(audit, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert len(document["signed"]["problems"]) == 1
    audit.copy.unlink()
    assert verify(audit) == 1
    (audit.folder / "kept").write_bytes(b"something else\n" + whole)
    assert verify(audit, "--checkpoint", str(audit.folder / "kept")) == 1
    assert "lines are missing" in capsys.readouterr().out


def test_an_audit_in_the_place_of_another_one_says_where_it_was_written(
    audit: SignedAudit, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(audit) == 0
    assert "was written as" not in capsys.readouterr().out
    other = audit.folder / "other.jsonl"
    for end in ("", ".signed"):
        other.with_name(f"other.jsonl{end}").write_bytes(audit.file.with_name(f"audit.jsonl{end}").read_bytes())
    assert main(["verify", str(other), "--public-key", str(audit.public_key)]) == 0
    assert f":{audit.file}: is that the audit that you mean?" in capsys.readouterr().out


def test_a_head_that_is_there_shows_the_end_where_the_copy_is_missing(
    audit: SignedAudit, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(audit, "--json") == 0
    head = json.loads(capsys.readouterr().out)["files"][0]["head"]
    audit.copy.unlink()
    assert verify(audit) == 1
    assert verify(audit, "--expect-head", head) == 0
    assert verify(audit, "--head", "0" * 64) == 1


@pytest.mark.parametrize("option", ["--public-key", "--checkpoint", "--store"])
def test_a_file_that_is_not_there_is_named(audit: SignedAudit, option: str) -> None:
    with pytest.raises(UserError, match=r"absent"):
        verify(audit, option, str(audit.folder / "absent"))


def test_the_store_is_needed_for_the_option(audit: SignedAudit) -> None:
    (audit.folder / "gateway.toml").write_text("[gateway]\n")
    with pytest.raises(UserError, match=r"has no table \[gateway.store\]"):
        verify(audit, "--store", str(audit.folder / "gateway.toml"))


def test_checkpoints_are_no_rows_unless_they_have_found_a_cut(
    audit: SignedAudit, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(audit.file)])
    assert "checkpoint" not in capsys.readouterr().out
    audit.kill()
    audit.put(audit.lines()[:3])
    audit.start()
    audit.write(1)
    audit.seal()
    main([str(audit.file)])
    assert "the audit was cut or replaced before this line" in capsys.readouterr().out
    main([str(audit.file), "--json"])
    assert '"checkpoint"' in capsys.readouterr().out


# --- receipts ---


def receipt_of(audit: SignedAudit, call: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["receipt", call, str(audit.file)]) == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out, parse_float=str)
    return made


def is_proven(audit: SignedAudit, text: str, key: Path | None = None) -> bool:
    path = audit.folder / "receipt.json"
    path.write_text(text)
    status: int = VERIFIER.main([str(path), str(key or audit.public_key)])
    return status == 0


@pytest.mark.parametrize("number", range(1, 10))
def test_the_receipt_of_each_call_is_proven(
    audit: SignedAudit, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    assert main(["receipt", f"abc123-{number}", str(audit.file)]) == 0
    text = capsys.readouterr().out
    assert is_proven(audit, text)
    assert f"of {audit.checkpoints()[0].host}:{audit.file}" in capsys.readouterr().out


def test_a_receipt_is_proven_with_a_key_as_pem_too(audit: SignedAudit, capsys: pytest.CaptureFixture[str]) -> None:
    pem = audit.folder / "key.pem"
    pem.write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    main(["receipt", "abc123-2", str(audit.file)])
    assert is_proven(audit, capsys.readouterr().out, pem)


Tamper = Callable[[dict[str, Any]], object]


def set_in(*path: str | int, to: object) -> Tamper:
    def tamper(receipt: Any) -> None:  # noqa: ANN401  # JSON
        for name in path[:-1]:
            receipt = receipt[name]
        receipt[path[-1]] = to

    return tamper


ENTRY: Final = ("records", 0)


@pytest.mark.parametrize(
    ("what", "tamper"),
    [
        ("the record is not that of the line", set_in(*ENTRY, "record", "server", to="other")),
        ("is not one of those that were signed", set_in(*ENTRY, "line", to='{"call":"abc123-2"}')),
        ("is not one of those that were signed", set_in(*ENTRY, "index", to=2)),
        ("is not one of those that were signed", set_in(*ENTRY, "index", to=-1)),
        ("is not one of those that were signed", set_in(*ENTRY, "path", to=[])),
        ("does not fit the checkpoint", set_in(*ENTRY, "checkpoint", "time", to="2020")),
        ("does not fit the checkpoint", set_in(*ENTRY, "checkpoint", "lines", to=7)),
        ("does not fit the checkpoint", set_in(*ENTRY, "checkpoint", "more", to="x")),
        ("does not fit the checkpoint", set_in(*ENTRY, "signature", to="AAAA")),
        ("another key", set_in(*ENTRY, "checkpoint", "key", to="SHA256:x")),
        ("no checkpoint that this program knows", set_in(*ENTRY, "checkpoint", "format", to="x")),
        ("no such value", set_in(*ENTRY, "checkpoint", "number", to=1.5)),
        ("of another call", set_in("call", to="abc123-3")),
        ("not a receipt", set_in("format", to="x")),
        ("no records", set_in("records", to=[])),
        ("lacks 'line'", lambda receipt: receipt["records"][0].pop("line")),
    ],
)
def test_a_receipt_that_was_changed_is_not_proven(
    audit: SignedAudit, capsys: pytest.CaptureFixture[str], what: str, tamper: Tamper
) -> None:
    receipt = receipt_of(audit, "abc123-2", capsys)
    tamper(receipt)
    assert not is_proven(audit, json.dumps(receipt).replace('"1.5"', "1.5"))
    assert what in capsys.readouterr().out


def test_the_exact_spelling_of_a_number_is_proven(audit: SignedAudit, capsys: pytest.CaptureFixture[str]) -> None:
    main(["receipt", "abc123-2", str(audit.file)])
    text = capsys.readouterr().out
    assert '"id": 1.5' in text
    assert not is_proven(audit, text.replace('"id": 1.5', '"id": 1.50'))
    assert not is_proven(audit, text.replace('"id": 1.5', '"id": 1.5, "id": 1.5'))


def test_a_receipt_of_another_gateway_is_not_proven_by_our_key(
    audit: SignedAudit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b").mkdir()
    other = SignedAudit(tmp_path / "b", key=Ed25519PrivateKey.generate())
    other.write(2)
    other.seal()
    main(["receipt", "abc123-2", str(other.file)])
    text = capsys.readouterr().out
    assert is_proven(other, text)
    assert not is_proven(audit, text)
    receipt = json.loads(text, parse_float=str)
    receipt["records"][0]["checkpoint"]["key"] = audit.checkpoints()[0].key
    assert not is_proven(audit, json.dumps(receipt).replace('"1.5"', "1.5"))


def test_the_verifier_says_what_it_cannot_read(audit: SignedAudit, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(audit.folder / "receipt.json")
    assert VERIFIER.main([]) == 2
    assert VERIFIER.main([path, str(audit.public_key)]) == 2
    Path(path).write_text("{}")
    assert VERIFIER.main([path, path]) == 2
    assert "has no public Ed25519 key" in capsys.readouterr().err
    assert VERIFIER.main([path, str(audit.public_key)]) == 1
    Path(path).write_text("[" * 100_000)
    assert VERIFIER.main([path, str(audit.public_key)]) == 1


def test_the_verifier_needs_nothing_but_pythons_own_library() -> None:
    import ast
    import sys

    imported = {
        name.name.split(".")[0]
        for node in ast.walk(ast.parse(PROGRAM.read_text()))
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert imported <= sys.stdlib_module_names


def test_its_signatures_are_those_of_the_library() -> None:
    public = KEY.public_key().public_bytes_raw()
    for number in range(4):
        text = b"x" * number
        signature = KEY.sign(text)
        assert VERIFIER.is_signed(public, signature, text)
        assert not VERIFIER.is_signed(public, signature, text + b"y")
        assert not VERIFIER.is_signed(public, signature[:-1] + b"\xff", text)
    order = VERIFIER.ORDER
    high = (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
    assert not VERIFIER.is_signed(public, signature[:32] + high, text)  # another spelling of the same number
    identity = (1).to_bytes(32, "little")
    assert not VERIFIER.is_signed(identity, identity + bytes(32), b"")  # a key that signs everything


def test_a_call_without_a_checkpoint_has_no_receipt_yet(audit: SignedAudit) -> None:
    audit.write(1)
    with pytest.raises(UserError, match=r"1 line of the call abc123-10 is not signed yet"):
        main(["receipt", "abc123-10", str(audit.file)])
    with pytest.raises(UserError, match=r"there is no call"):
        main(["receipt", "ffffff-1", str(audit.file)])


def test_no_receipt_is_made_of_lines_that_were_changed(audit: SignedAudit) -> None:
    audit.put(rechained([line.replace(b"push", b"pull") for line in audit.lines()]))
    with pytest.raises(UserError, match=r"not those that were signed"):
        main(["receipt", "abc123-2", str(audit.file)])


def test_a_receipt_has_all_lines_of_a_call_also_from_rotated_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = SignedAudit(tmp_path, limit=65_536)
    audit.write(2, pad=2000)
    audit.seal()
    audit.write(60, pad=2000)
    audit.seal()
    audit._calls = 1
    audit.write(1)
    audit.seal()
    receipt = receipt_of(audit, "abc123-2", capsys)
    assert [entry["checkpoint"]["number"] for entry in receipt["records"]] == [1, 3]
    main(["receipt", "abc123-2", str(audit.file)])
    assert is_proven(audit, capsys.readouterr().out)


# --- filters ---


def test_the_calls_of_a_user_a_server_or_a_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "audit.jsonl"
    lines: list[dict[str, object]] = [
        {"call": "aaaaaa-1", "server": "git", "user": "anna", "user_id": "uid:1", "groups": ["dev", "ops"]},
        {"call": "aaaaaa-2", "server": "db", "user": "anna", "user_id": "uid:1", "groups": ["dev"]},
        {"call": "aaaaaa-3", "server": "git", "user": "bob", "user_id": "uid:2"},
    ]
    common = {"v": 1, "time": "2026-11-01T10:00:00+00:00", "tool": "push", "decision": "allow", "result": "ok"}
    file.write_text("".join(json.dumps({**common, **line}) + "\n" for line in lines))

    def shown(*options: str) -> list[str]:
        main([str(file), "--json", *options])
        return [json.loads(line)["call"][-1] for line in capsys.readouterr().out.splitlines()]

    assert shown("--user", "anna") == ["1", "2"]
    assert shown("--user", "uid:2") == ["3"]
    assert shown("--user", "a*", "--server", "git") == ["1"]
    assert shown("--server", "[!g]*") == ["2"]
    assert shown("--group", "dev") == ["1", "2"]
    assert shown("--group", "@ops") == ["1"]
    assert shown("--user", "an") == []
    main(["stats", str(file), "--json", "--user", "bob"])
    assert json.loads(capsys.readouterr().out)["all"]["calls"] == 1
