"""Archives are read strictly: what two readers could read differently, or what leads out of the folder, is refused."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hookproxy.archives import archive, names


def tar(*members: tarfile.TarInfo | tuple[str, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=form) as file:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                file.addfile(member)
            else:
                name, content = member
                info = tarfile.TarInfo(name)
                info.size = len(content)
                file.addfile(info, io.BytesIO(content))
    return written.getvalue()


def member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def shown(value: bytes | str) -> str:
    """The name of a parameter: archives have times in them, which must not be in names of tests."""
    return value if isinstance(value, str) else "archive"


def test_what_is_written_is_read_by_us_and_by_tar(tmp_path: Path) -> None:
    files = {
        "policy.toml": b"x = 1\n",
        "guards/a.sh": b"#!/bin/sh\n",
        "/".join(["long" * 10] * 4): b"y" * 600,
        "e": b"",
    }
    data = archive.write(files, frozenset({"guards/a.sh"}))
    assert archive.read(data) == files
    assert archive.write(dict(reversed(files.items())), frozenset({"guards/a.sh"})) == data
    (tmp_path / "b.tar.gz").write_bytes(data)
    subprocess.run(["tar", "-xzf", "b.tar.gz"], cwd=tmp_path, check=True)
    assert {name: (tmp_path / name).read_bytes() for name in files} == files
    assert (tmp_path / "guards" / "a.sh").stat().st_mode & 0o111
    assert not (tmp_path / "policy.toml").stat().st_mode & 0o111


@pytest.mark.parametrize("options", [["--format=ustar", "-czf"], ["--format=gnu", "-cf"]])
def test_what_tar_writes_is_read(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "p" / "guards").mkdir(parents=True)
    (tmp_path / "p" / "policy.toml").write_text("x = 1\n")
    (tmp_path / "p" / "guards" / "a.sh").write_text("#!/bin/sh\n")
    subprocess.run(["tar", *options, tmp_path / "b", "-C", tmp_path / "p", "."], check=True)
    assert archive.read((tmp_path / "b").read_bytes()) == {"policy.toml": b"x = 1\n", "guards/a.sh": b"#!/bin/sh\n"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (tar(("../x", b"")), "leads out"),
        (tar(("a/../../x", b"")), "leads out"),
        (tar(("/etc/x", b"")), "leads out"),
        (tar(("a//b", b"")), "leads out"),
        (tar(("a/./b", b"")), "leads out"),
        (tar(member("..", tarfile.DIRTYPE)), "leads out"),
        (tar(member("a", tarfile.SYMTYPE, "/etc/passwd")), "a is a link"),
        (tar(member("a", tarfile.LNKTYPE, "policy.toml")), "a is a hard link"),
        (tar(member("a", tarfile.CHRTYPE)), "a is a device"),
        (tar(member("a", tarfile.BLKTYPE)), "a is a device"),
        (tar(member("a", tarfile.FIFOTYPE)), "a is a pipe"),
        (tar(member("a", tarfile.CONTTYPE)), "only newer formats"),
        (tar(("a", b"1"), ("a", b"2")), "two files a"),
        (tar(("./a", b"1"), ("a", b"2")), "two files a"),
        (tar(("Guard.sh", b"1"), ("guard.sh", b"2")), "differ only in their case"),
        (tar(("G/a", b"1"), ("g/b", b"2")), "differ only in their case"),
        (tar(("a", b"1"), ("a/b", b"2")), "is a file and a folder"),
        (tar(("caf\u00e9", b"1"), form=tarfile.GNU_FORMAT), "other characters"),
        (tar(("a b", b"1")), "other characters"),
        (tar(("a\\b", b"1")), "other characters"),
        (tar(("a\nb", b"1")), "other characters"),
        (tar(("n" * 101 + "/x", b"1"), form=tarfile.GNU_FORMAT), "only newer formats"),
        (tar(("caf\u00e9", b"1"), form=tarfile.PAX_FORMAT), "only newer formats"),
        (tar(("a", b"1"))[:600], "cut off"),
        (tar(("a", b"1"))[:1024], "cut off"),
        (tar(("a", b"1")) + b"more", "after its end"),
        (b"", "it is empty"),
        (b"nonsense" * 100, "not a tar file"),
        (gzip.compress(tar(("a", b"1")))[:-5], "cut off"),
        (gzip.compress(tar(("a", b"1"))) + b"more", "after its end"),
        (gzip.compress(tar(("a", b"1"))) * 2, "after its end"),
        (b"\x1f\x8bnonsense", "not gzip"),
        (gzip.compress(bytes(archive.MOST_BYTES + 1)), "unpacks to more"),
        (tar(*((f"f{number}", b"") for number in range(archive.MOST_FILES + 1))), "more than 2000 files"),
    ],
    ids=shown,
)
def test_an_archive_that_is_not_plain_is_refused(data: bytes, why: str) -> None:
    with pytest.raises((archive.BadArchive, names.BadName), match=why):
        archive.read(data)


@pytest.mark.slow
def test_a_bomb_is_not_unpacked() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = packer.compress(bytes(64 * 1024 * 1024)) + packer.flush()
    assert len(zeros) < 100_000
    with pytest.raises(archive.BadArchive, match="unpacks to more"):
        archive.read(zeros)


def patched(change: Callable[[bytearray], None]) -> bytes:
    """An archive with a header that was changed and has the right sum."""
    data = bytearray(tar(("a", b"12")))
    change(data)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def field(start: int, value: bytes) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[start : start + len(value)] = value

    return change


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (patched(field(124, b"-0000000001\0")), "something else than a number"),
        (patched(field(124, b"\x80" + bytes(10) + b"\x02")), "something else than a number"),
        (patched(field(124, b"77777777777\0")), "cut off in a"),
        (patched(field(0, b"a\0b")), "read in two ways"),
        (patched(field(257, b"ustar  \0")), ""),
        (bytes(field(0, b"b")(data := bytearray(tar(("a", b"")))) or data), "the sum of a header is wrong"),
    ],
    ids=shown,
)
def test_a_header_that_readers_read_differently_is_refused(data: bytes, why: str) -> None:
    if not why:  # the header of GNU tar is another spelling of the same
        assert archive.read(data) == {"a": b"12"}
        return
    with pytest.raises(archive.BadArchive, match=why):
        archive.read(data)


def test_the_part_for_sparse_files_of_a_gnu_header_must_be_empty() -> None:
    data = bytearray(patched(field(257, b"ustar  \0")))
    data[386:398] = b"00000000001\0"
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    with pytest.raises(archive.BadArchive, match="more than a name"):
        archive.read(bytes(data))


def test_too_much_is_not_written() -> None:
    with pytest.raises(archive.BadArchive, match="more than"):
        archive.write({"a": bytes(archive.MOST_BYTES)})
    with pytest.raises(names.BadName, match="leads out"):
        archive.write({"../a": b""})
