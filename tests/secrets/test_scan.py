"""Secrets in files of any size are found where they are, once, in little memory."""

from __future__ import annotations

import io
import tracemalloc
from random import Random

import pytest

from hookproxy.model.secret_settings import SecretSettings
from hookproxy.secrets import scan
from hookproxy.secrets.finder import Finder
from hookproxy.secrets.scan import Place, in_record, in_text

TOKEN = b"ghp_" + b"aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
FINDER = Finder(SecretSettings(), {"MY_KEY": b"correct-horse-9"})


class Slow(io.BytesIO):
    """A file that gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, random: Random) -> None:
        super().__init__(data)
        self._random = random

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(self._random.randint(1, 300), size or 300))


def test_a_place_has_a_line_and_a_column_in_characters() -> None:
    text = "é\nä key: ".encode() + TOKEN + b"\ncorrect-horse-9"
    assert list(in_text(io.BytesIO(text), FINDER)) == [Place("github-pat", 2, 8), Place("MY_KEY", 3, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_where_pieces_meet_nothing_is_missed_or_found_twice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    words = [TOKEN, b"correct-horse-9", b"\n", b" words and more words ", b'api_key = "k3J9x8Lq2Wm4Zt7Rv1Ny6"\n']
    text = b" ".join(random.choices(words, k=60))
    whole = list(in_text(io.BytesIO(text), FINDER))
    monkeypatch.setattr(scan, "_LONGEST", 200)
    monkeypatch.setattr(scan, "_BEFORE", 100)
    assert list(in_text(Slow(text, random), FINDER)) == whole


def test_a_large_file_is_read_by_pieces() -> None:
    class Large:
        left = 24

        def read(self, size: int, /) -> bytes:
            self.left -= 1
            return b"ordinary words on a line\n" * (size // 25) if self.left else b""

    tracemalloc.start()
    try:
        assert list(in_text(Large(), FINDER)) == []
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_a_place_in_a_record_names_the_member() -> None:
    raw = b'{"v": 1, "arguments": {"x": [1, {"y\\"z": "a"}, "t: %s"]}, "n": 2}' % TOKEN
    assert in_record(raw, 7, FINDER) == [Place("github-pat", 7, raw.index(TOKEN) + 1, "arguments.x[2]")]


def test_a_name_with_a_secret_is_not_shown() -> None:
    raw = b'{"a": {"key %s": ["correct-horse-9"]}}' % TOKEN
    assert [place.member for place in in_record(raw, 1, FINDER)] == ["a.…", "a.…[0]"]
