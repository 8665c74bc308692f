"""Which calls are like one that a person has approved."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.policy.similar_calls import SimilarCalls, similar_calls
from hookproxy.shell.statements import LONGEST


def arguments(**members: object) -> bytes:
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", "ls"),
        ("ls -la", "ls -la"),
        ("ls -la src", "ls -la src"),
        ("git push origin main", "git push"),
        ("  npm run test ", "npm run"),
        ("rm -r -f build", "rm -r -f build"),
        ("/usr/bin/make all", "/usr/bin/make all"),
        ("cat 'a b.txt'", None),
        ("git push; rm -rf /", None),
        ("git push && ls", None),
        ("ls > /etc/passwd", None),
        ("ls $(rm x)", None),
        ("ls `rm x`", None),
        ("ls\nrm x", None),
        ("ls ../x", None),
        ("sudo ls", None),
        ("python3 -c x", None),
        ("bash -c ls", None),
        ("/bin/sh x", None),
        ("X=1 ls", None),
        ("find . -delete", None),
        ("uv run pytest", None),
        ("uvx ruff", None),
        ("poetry run x", None),
        ("npx tsc", None),
        ("npm exec x", None),
        ("nodejs x.js", None),
        ("node x.js", None),
        ("go run x.go", None),
        ("taskset 1 ls", None),
        ("setarch x86_64 ls", None),
        ("flock f ls", None),
        ("timeout 5 ls", None),
        ("docker exec c ls", None),
        ("docker run i ls", None),
        ("kubectl exec p ls", None),
        ("git bisect run ls", None),
        ("git config alias.x ls", None),
        ("git -C x push", "git -C x push"),
        ("npm --prefix x run y", "npm --prefix x run"),
        ("docker ps -a", "docker ps"),
        ("kubectl get pods", "kubectl get"),
        ("ls\u00a0x", None),
        ("", None),
    ],
)
def test_the_first_words_of_a_command(command: str, words: str | None) -> None:
    found = similar_calls("run", arguments(command=command, n=1), "command")
    assert (found and found.text) == (words and f"run({words} *)")


@pytest.mark.parametrize(
    ("tool", "members", "included"),
    [
        ("run", {"command": "git push", "cwd": "/x"}, True),
        ("run", {"command": "git push --force", "cwd": "/x"}, True),
        ("run", {"command": "git push 'a b'", "cwd": "/x"}, True),
        ("run", {"command": "git pushes", "cwd": "/x"}, False),
        ("run", {"command": "git  push", "cwd": "/x"}, False),
        ("run", {"command": "git push; rm -rf /", "cwd": "/x"}, False),
        ("run", {"command": "git push | sh", "cwd": "/x"}, False),
        ("run", {"command": "git push\nrm x", "cwd": "/x"}, False),
        ("run", {"command": "git push\trm x", "cwd": "/x"}, False),
        ("run", {"command": "git push $(rm x)", "cwd": "/x"}, False),
        ("run", {"command": "git push ../../x", "cwd": "/x"}, False),
        ("run", {"command": "git push", "cwd": "/"}, False),
        ("run", {"command": "git push"}, False),
        ("run", {"command": "git push", "cwd": "/x", "input": "y"}, False),
        ("run", {"command": "git push --receive-pack='rm x' y", "cwd": "/x"}, False),
        ("run", {"command": "git push ext::rm", "cwd": "/x"}, False),
        ("run", {"command": ["git push"], "cwd": "/x"}, False),
        ("other", {"command": "git push", "cwd": "/x"}, False),
    ],
)
def test_calls_that_are_like_an_approved_one(tool: str, members: dict[str, object], included: bool) -> None:
    found = similar_calls("run", arguments(command="git push origin main", cwd="/x"), "command")
    assert found is not None
    assert found.include(tool, arguments(**members)) is included


def test_a_call_without_a_command_is_not_like_any() -> None:
    for raw in (b"{}", b"[]", b"{", b'{"command":null}', b'{"command":"\\ud800"}'):
        assert similar_calls("run", raw, "command") is None


@given(st.text(alphabet="abgit -;|&$`(){}<>\n\t'\"\\=./*~#!", max_size=20))
def test_no_sign_of_a_shell_makes_another_command_like_the_approved_one(rest: str) -> None:
    found = similar_calls("run", arguments(command="git status"), "command")
    assert found is not None
    if found.include("run", arguments(command=f"git status {rest}")):
        assert not set(rest) & set(";|&$`(){}<>\n\t\\#!")


@pytest.mark.parametrize(
    ("command", "words"),
    [("ls\n", None), ("\tls", None), ("ls  x", None), ("Xcode x", "Xcode x"), ("make X", "make X")],
)
def test_only_spaces_around_a_command_do_not_matter(command: str, words: str | None) -> None:
    similar = similar_calls("shell", arguments(command=command), "command")
    assert (similar.words if similar else None) == words


def test_a_line_that_nobody_reads_is_like_none_and_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Searched:
        def fullmatch(self, text: str) -> None:
            raise AssertionError(f"{len(text)} characters were searched")

    monkeypatch.setattr("hookproxy.policy.similar_calls._PLAIN_LINE", Searched())
    long = arguments(command="ls " + "a" * LONGEST)
    assert similar_calls("Bash", long, "command") is None
    assert not SimilarCalls("Bash", "ls", "command", {}).include("Bash", long)
