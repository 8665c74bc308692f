"""The fuzzer beside bash with a fixed seed, and proof that it finds what it is for."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from hookproxy.shell import commands, statements
from tests.random import shell_fuzzer

SEED: Final = 20
LINES: Final = 150
"""Some two seconds. `scripts/fuzz shell --seconds N` tries others."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_what_bash_runs_is_read(tmp_path: Path) -> None:
    tried = shell_fuzzer.check(list(islice(shell_fuzzer.all_lines(SEED), LINES)), tmp_path)
    assert tried.findings == []
    assert tried.proven > 10


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_fuzzer_finds_what_a_weaker_reader_hides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first_only(line: str) -> statements.Script:
        return statements.Script(statements.read(line).commands[:1])

    monkeypatch.setattr(commands, "read", first_only)
    commands.commands_of.cache_clear()
    assert shell_fuzzer.check(list(islice(shell_fuzzer.all_lines(SEED), LINES)), tmp_path).findings != []
    commands.commands_of.cache_clear()
