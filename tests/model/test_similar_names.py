"""What a misspelt name of a file or a program may mean, wherever it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hookproxy.cli import convert, init, learn, wrap
from hookproxy.model.errors import UserError
from hookproxy.model.similar_names import similar_file, similar_program


def test_a_file_that_is_missing_is_compared_with_those_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").touch()
    assert similar_file(str(tmp_path / "audit.jsnl")) == "did you mean 'audit.jsonl'?"
    assert similar_file(str(tmp_path / "other.txt")) == ""
    assert similar_file(str(tmp_path / "no-folder" / "audit.jsonl")) == ""


def test_a_program_that_is_missing_is_compared_with_those_in_path(tmp_path: Path) -> None:
    (tmp_path / "mcp-server-git").touch()
    assert similar_program("mcp-server-gti", f":{tmp_path}/absent:{tmp_path}") == "did you mean 'mcp-server-git'?"
    assert similar_program("mcp-server-gti", "") == ""


@pytest.mark.parametrize(
    ("main", "words", "hint"),
    [
        (learn.main, ["audit.jsnl"], "did you mean 'audit.jsonl'?"),
        (wrap.main, ["mcp.jsn"], "did you mean 'mcp.json'?"),
        (convert.main, ["settigns.json", "--to", "copilot"], "did you mean 'settings.json'?"),
        (convert.main, ["absent.txt", "--to", "copilot"], "name the hook file"),
        (convert.main, ["settings.json", "--to", "cursur"], "did you mean 'cursor'?"),
        (convert.main, ["settings.json", "--to", "opencode"], "expected one of antigravity"),
        (
            init.main,
            ["allow-list", "--", "pyhton3 -m x"],
            "leave out the quotes, which make one word of it; the server",
        ),
        (
            init.main,
            ["allow-list", "--", "my-sever"],
            "did you mean 'my-server'? the server's command line is: my-sever",
        ),
    ],
)
def test_a_misspelt_name_on_the_command_line_has_the_right_one_in_its_hint(
    main: Callable[[Sequence[str]], int], words: list[str], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("audit.jsonl", "mcp.json", "settings.json", "my-server"):
        (tmp_path / name).write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        main(words)
    assert hint in caught.value.hint
