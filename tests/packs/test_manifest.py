"""Whether the files of a pack may be used: all of them are named with their hash, and signed by whoever counts."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest

from hookproxy.archives.listed import Refused
from hookproxy.model.errors import ConfigError
from hookproxy.packs import make
from hookproxy.packs.manifest import MANIFEST, SIGNATURE, Memory, check_successor, number, read, verify
from tests.support.packs import pack
from tests.support.signed_policy import new_key

KEY, OTHER = new_key(), new_key()


def test_a_pack_is_its_files_and_who_has_signed_them() -> None:
    files = pack(key=KEY)
    verified = verify(files, [OTHER.public, KEY.public])
    assert (verified.name, verified.version, verified.signed_by) == ("quiet", "1.0.0", KEY.public)
    assert verified.manifest.files["hooks/quiet.sh"].executable
    assert verify(pack(), None).signed_by is None
    named = verify(files, None).signed_by
    assert named is not None
    assert named.raw == KEY.public.raw, "a signature says itself who has made it"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda files: {**files, "hookproxy.toml": b"[permissions]\n"}, "hookproxy.toml is not the file"),
        (lambda files: {**files, "more.sh": b""}, "more.sh is not in pack.toml"),
        (lambda files: {**files, "Hooks/quiet.sh": b""}, "differ"),
        (lambda files: {**files, "PACK.TOML": b""}, "differ only in their case"),
        (lambda files: {name: files[name] for name in files if name != "hooks/quiet.sh"}, "quiet.sh is missing"),
        (lambda files: {name: files[name] for name in files if name != MANIFEST}, "it has no pack.toml"),
        (lambda files: {**files, MANIFEST: files[MANIFEST] + b"#"}, "is not what its key has signed"),
        (lambda files: {**files, MANIFEST: b"x = ["}, "is not what its key has signed"),
        (lambda files: {**files, SIGNATURE: b""}, "no signature that can be read"),
        (lambda files: {**files, SIGNATURE: pack(key=OTHER)[SIGNATURE]}, "is not signed by one of the keys"),
        (lambda _files: pack(), "it is not signed"),
        (lambda _files: pack(key=OTHER), "is not signed by one of the keys"),
    ],
)
def test_whatever_is_not_signed_is_refused(change: Callable[[dict[str, bytes]], dict[str, bytes]], why: str) -> None:
    with pytest.raises(Refused, match=why):
        verify(change(pack(key=KEY)), [KEY.public])


@pytest.mark.parametrize(("text", "why"), [(b"\xff", "is not UTF-8"), (b"x = [", "cannot be read"), (b"", "cannot be")])
def test_a_manifest_that_cannot_be_read_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        verify({**pack(), MANIFEST: text}, None)


def test_no_manifest_takes_long_to_read() -> None:
    started = process_time()
    with pytest.raises(Refused, match="a key has more than 40 parts"):
        verify({**pack(), MANIFEST: b"a" + b".a" * 30_000 + b" = 1"}, None)
    assert process_time() - started < 1


def test_a_signature_must_be_right_even_if_nobody_has_said_whose_counts() -> None:
    files = {**pack(key=KEY), MANIFEST: pack("2.0.0")[MANIFEST]}
    with pytest.raises(Refused, match="is not what its key has signed"):
        verify(files, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('name = "../x"', "name"),
        ('name = "Big"', "name"),
        ('version = "1.0-rc1"', "version"),
        ('version = "01"', "version"),
        ('format = "hookproxy-pack-2"', "format"),
        ("surprise = 1", "surprise"),
        ('needs = { packages = ["regex"] }', "packages"),
        ('needs = { packages = ["regex>=1"] }', "packages"),
        ('needs = { packages = ["--index-url=x==1"] }', "packages"),
        ('needs = { packages = ["x @ https://example.com/x.whl"] }', "packages"),
        ('needs = { packages = ["x==1 --pre"] }', "packages"),
        ('needs = { packages = ["x==1\\n-r other"] }', "packages"),
        ('needs = { programs = ["../sh"] }', "programs"),
        ("files = { }", "files"),
        ("files = { 'x' = { sha256 = 'x', size = 1 } }", "sha256"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(text: str, why: str) -> None:
    usual = {"format": '"hookproxy-pack-1"', "name": '"x"', "version": '"1"', "description": '""'}
    key = text.partition(" ")[0]
    digest = "0" * 64
    usual["files"] = f"{{ 'hookproxy.toml' = {{ sha256 = '{digest}', size = 1 }} }}"
    lines = "".join(f"{name} = {value}\n" for name, value in usual.items() if name != key)
    assert read({MANIFEST: "".join(f"{name} = {value}\n" for name, value in usual.items()).encode()}).name == "x"
    with pytest.raises(Refused, match=why):
        read({MANIFEST: f"{lines}{text}\n".encode()})


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/x", "a//b", "hooks/quiet.sh/x", "HOOKS/quiet.sh", ".hidden", "a/.b/c", "__pycache__/x", "a\\b"],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    text = pack()[MANIFEST].decode()
    line = text.splitlines()[-1].partition(" = ")[2]
    with pytest.raises(Refused):
        read({MANIFEST: f"{text}'{name}' = {line}\n".encode()})


@pytest.mark.parametrize(
    ("version", "is_newer"),
    [("1.0.1", True), ("1.10", True), ("2", True), ("0.9", False), ("1.0.0", False), ("1", False)],
)
def test_a_version_never_goes_down(version: str, is_newer: bool) -> None:
    first = verify(pack("1.0.0"), None)
    memory = Memory(first.version, first.digest)
    assert check_successor(first, memory, None) is False
    other = verify(pack(version, files={"more.txt": ""}), None)
    if is_newer:
        assert check_successor(other, memory, None) is True
    else:
        with pytest.raises(Refused, match=r"older than|with another content"):
            check_successor(other, memory, None)


def test_without_keys_the_first_key_is_the_one_that_counts() -> None:
    memory = Memory("1.0.0", "x", KEY.public.line)
    assert check_successor(verify(pack("1.1", key=KEY), None), memory, None)
    with pytest.raises(Refused, match="another key"):
        check_successor(verify(pack("1.1", key=OTHER), None), memory, None)
    with pytest.raises(Refused, match="is not signed"):
        check_successor(verify(pack("1.1"), None), memory, None)
    keys = [OTHER.public]
    assert check_successor(verify(pack("1.1", key=OTHER), keys), memory, keys), "whoever names keys may change them"


def test_versions_are_compared_as_numbers() -> None:
    assert number("1.10") > number("1.9.9")
    assert number("1.0.0") == number("1")


def test_only_the_table_of_files_is_written_anew() -> None:
    files = {"hookproxy.toml": b"", "new.py": b"x"}
    head = '# mine\nformat = "hookproxy-pack-1"\nname = "x"\nversion = "1" # one\ndescription = ""\n\n'
    text = f'{head}[files] # old\n"y" = 1\n'
    changed = make.with_files("pack.toml", text, files, frozenset())
    assert changed.startswith(head)
    assert set(read({MANIFEST: changed.encode()}).files) == set(files)
    assert make.with_files("pack.toml", changed, files, frozenset()) == changed
    with pytest.raises(ConfigError, match="below"):
        make.with_files("pack.toml", f'{text}\n[needs]\npython = "3.12"\n', files, frozenset())
