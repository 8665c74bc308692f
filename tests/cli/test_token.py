"""`hookproxy token` as an operator sees it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hookproxy.authorization.bearer_tokens import BearerTokens
from hookproxy.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def token(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    assert main(["token", *arguments, "--file", "tokens"]) == status
    ended = capsys.readouterr()
    return ended.out, ended.err


def test_a_new_token_is_printed_alone_and_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed, said = token(
        capsys, "new", "alice", "--group", "dev", "--group", "ops", "--expires", "0.5", "--note", "her laptop"
    )
    assert printed.startswith("hkp_")
    assert printed.count("\n") == 1
    assert "is for alice in dev, ops, until 2" in said
    for text in ((folder / "tokens").read_text(), said, *token(capsys, "list")):
        assert printed.strip() not in text
    known = BearerTokens("tokens", print).find(printed.strip().encode())
    assert known
    assert known.principal.groups == ("dev", "ops")
    assert stat.S_IMODE(os.stat("tokens").st_mode) == 0o600


def test_the_list_shows_whose_tokens_there_are_and_which_have_expired(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token(capsys, "new", "alice", "--group", "dev", "--note", "her laptop")
    with (folder / "tokens").open("a") as file:
        file.write(f"0000aaaa bob - 2020-01-01T00:00:00Z 2020-02-01T00:00:00+01:00 sha256:{'0' * 64} # \x1b[31mred\n")
    rows = token(capsys, "list")[0].splitlines()
    assert rows[0].split() == ["id", "user", "groups", "created", "expires", "note"]
    assert rows[1].endswith("her laptop")
    assert "0000aaaa  bob    -       2020-01-01T00:00:00Z  2020-01-31T23:00:00Z (expired)  \\x1b[31mred" in rows[2]


def test_an_empty_list_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tokens").touch(0o600)
    assert token(capsys, "list") == ("", "hookproxy: tokens has no tokens\n")


def test_a_file_that_everybody_can_read_is_listed_with_a_warning(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token(capsys, "new", "alice")
    (folder / "tokens").chmod(0o644)
    assert token(capsys, "list")[1] == "hookproxy: tokens: everybody can read who has tokens (chmod o-r tokens)\n"


def test_a_revoked_token_is_named_by_its_id(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token(capsys, "new", "alice")
    token_id = token(capsys, "list")[0].splitlines()[1].split()[0]
    assert token(capsys, "revoke", "alice") == (f"revoked {token_id} of alice\n", "")
    assert token(capsys, "revoke", "alice", status=2)[1].startswith("error: alice: has no token in tokens\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "error: new, list or revoke must follow token\nhint: usage: hookproxy token new|list|revoke"),
        (["nw"], "error: there is no `hookproxy token nw`\nhint: did you mean 'new'?"),
        (["new", "alice"], "error: the following arguments are required: --file\nhint: usage: hookproxy token new"),
        (["new", "--file", "tokens"], "error: the following arguments are required: USER"),
        (["new", "@alice", "--file", "tokens"], "error: '@alice' is not the name of a user\nhint: letters"),
        (["new", "alice", "--group", "@dev", "--file", "tokens"], "'@dev' is not the name of a group\nhint: letters"),
        (["new", "alice", "--expires", "-1", "--file", "tokens"], "error: --expires -1: is out of range\nhint: days"),
        (["new", "alice", "--note", "a\nb", "--file", "tokens"], "error: the note cannot be stored\nhint: one line"),
        (["new", "alice", "--file", "none/tokens"], "error: "),
        (["list", "--file", "none"], "hint: hookproxy token new USER --file none makes it"),
        (["revoke", "alice", "--file", "none"], "does not exist\nhint: name the file that the gateway's configuration"),
    ],
)
def test_a_mistake_has_one_line_and_a_hint_and_makes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], error: str
) -> None:
    assert main(["token", *arguments]) == 2
    printed, said = capsys.readouterr()
    assert printed == ""
    assert error in said
    assert "\nhint: " in said
    assert os.listdir(folder) == []


@pytest.mark.parametrize("subverb", [[], ["new"], ["list"], ["revoke"]])
def test_the_help_has_two_examples(capsys: pytest.CaptureFixture[str], subverb: list[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["token", *subverb, "--help"])
    assert capsys.readouterr().out.partition("\nexamples:\n")[2].count("  hookproxy token ") == 2
