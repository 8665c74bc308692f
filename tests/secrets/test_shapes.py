"""Shapes in which secrets are given to tools are masked, and what only looks like one of them stays: `shapes/*.txt`.

A line is one text, or arguments in JSON. In it `⏎` is the end of a line, and what must not be readable is in ⟦⟧.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hookproxy.secrets.mask import Masking

SHAPES = Path(__file__).parent / "shapes"
SECRET = re.compile("⟦(.*?)⟧", re.DOTALL)


def lines(name: str) -> list[str]:
    text = (SHAPES / name).read_text("utf-8")
    return [line.replace("⏎", "\n") for line in text.splitlines() if line and not line.startswith("## ")]


def arguments(line: str) -> bytes:
    return line.encode() if line.startswith('{"') else json.dumps({"text": line}, ensure_ascii=False).encode()


@pytest.mark.parametrize("line", lines("secrets.txt"))
def test_no_word_of_a_secret_stays_readable(line: str) -> None:
    shown = Masking().json(arguments(SECRET.sub(r"\1", line))).decode()
    others = SECRET.sub("", line)
    for secret in SECRET.findall(line):
        for word in secret.split():
            assert word in others or word not in shown


@pytest.mark.parametrize("line", lines("readable.txt"))
def test_what_stays_readable_is_known(line: str) -> None:
    """A shape that is masked since is moved to `secrets.txt`."""
    shown = Masking().json(arguments(SECRET.sub(r"\1", line))).decode()
    assert any(word in shown for secret in SECRET.findall(line) for word in secret.split())


@pytest.mark.parametrize("line", lines("ordinary.txt"))
def test_what_is_no_secret_stays(line: str) -> None:
    raw = arguments(line)
    assert Masking().json(raw) == raw


@pytest.mark.parametrize("line", lines("masked.txt"))
def test_what_is_masked_though_it_is_no_secret_is_known(line: str) -> None:
    """What stays readable since is moved to `ordinary.txt`."""
    raw = arguments(line)
    assert Masking().json(raw) != raw


def test_there_are_enough_of_both() -> None:
    names = ("secrets.txt", "readable.txt", "ordinary.txt", "masked.txt")
    secrets, readable, ordinary, masked = (len(lines(name)) for name in names)
    assert secrets >= 1180
    assert readable <= secrets // 14
    assert ordinary >= 830
    assert masked <= ordinary // 100
