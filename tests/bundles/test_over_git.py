"""Bundles from git repositories: a branch's plain files, and nothing that the repository or the account would run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hookproxy.archives import archive
from hookproxy.bundles import over_git, sources
from hookproxy.bundles.over_git import Access
from hookproxy.bundles.sources import Fetched, NotFetched

pytestmark = pytest.mark.slow

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def git(folder: Path, *words: str) -> str:
    ended = subprocess.run(["git", *words], cwd=folder, env=ENV, capture_output=True, text=True, check=True)
    return ended.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "policy"
    (folder / "guards").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "stable")
    (folder / "policy.toml").write_text("x = 1\n")
    (folder / "guards" / "a.sh").write_text("#!/bin/sh\n")
    (folder / "guards" / "a.sh").chmod(0o755)
    (folder / ".gitignore").write_text("*.tar.gz\n")
    commit(folder)
    return folder


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a policy")
    return git(folder, "rev-parse", "HEAD")


def fetched(repository: Path, mark: str = "", branch: str = "stable", environ: dict[str, str] | None = None) -> Fetched:
    source = sources.parse(f"git+file://{repository}#{branch}", "stable")
    work = repository.parent / "work"
    work.mkdir(exist_ok=True)
    try:
        return over_git.fetch(source, Access(environ or {}), str(work), mark)
    finally:
        assert os.listdir(work) == []


def test_a_branchs_files_are_fetched_and_its_commit_is_the_mark(repository: Path) -> None:
    found = fetched(repository)
    head = git(repository, "rev-parse", "HEAD")
    assert found == Fetched({"policy.toml": b"x = 1\n", "guards/a.sh": b"#!/bin/sh\n"}, head)
    assert fetched(repository, head) == Fetched(None, head)
    (repository / "policy.toml").write_text("x = 2\n")
    changed = fetched(repository, commit(repository)[::-1])
    assert changed.files is not None
    assert changed.files["policy.toml"] == b"x = 2\n"


def test_a_branch_or_a_repository_that_is_not_there_is_named(repository: Path) -> None:
    with pytest.raises(NotFetched, match="git ls-remote has failed: there is no such branch"):
        fetched(repository, branch="main")
    with pytest.raises(NotFetched, match="git ls-remote has failed"):
        fetched(repository / "nothing")


def test_a_link_and_a_submodule_are_refused(repository: Path) -> None:
    (repository / "guards" / "link").symlink_to("/etc/passwd")
    commit(repository)
    with pytest.raises(NotFetched, match="guards/link is not a plain file"):
        fetched(repository)
    git(repository, "rm", "-q", "--cached", "guards/link")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{git(repository, 'rev-parse', 'HEAD')},sub")
    git(repository, "commit", "-q", "-m", "a submodule")
    with pytest.raises(NotFetched, match="sub is not a plain file"):
        fetched(repository)


def test_names_that_file_systems_confuse_are_refused(repository: Path) -> None:
    (repository / "Policy.toml").write_text("")
    commit(repository)
    with pytest.raises(NotFetched, match="differ only in their case"):
        fetched(repository)


def test_what_is_too_large_is_not_read(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1000)
    (repository / "zeros").write_bytes(bytes(1001))
    commit(repository)
    with pytest.raises(NotFetched, match="more than 1000 bytes"):
        fetched(repository)


def test_a_tree_that_grows_without_end_is_not_listed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_git, "_FILE_BLOCKS", 256)
    entry = f"100644 blob {git(repository, 'rev-parse', 'HEAD:policy.toml')}"
    for _ in range(9):  # ten names, each a tree of ten names, and so on: a thousand million files
        lines = "".join(f"{entry}\tf{number}\n" for number in range(10))
        ended = subprocess.run(["git", "mktree"], cwd=repository, env=ENV, input=lines, capture_output=True, text=True)
        entry = f"040000 tree {ended.stdout.strip()}"
    bomb = git(repository, "commit-tree", "-m", "a bomb", entry.split()[-1])
    git(repository, "update-ref", "refs/heads/bomb", bomb)
    with pytest.raises(NotFetched, match="git ls-tree has failed"):
        fetched(repository, branch="bomb")


@pytest.mark.skipif(sys.platform != "linux", reason="there is no limit of memory elsewhere")
def test_an_object_that_unpacks_to_much_memory_is_refused(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_git, "_MEMORY_KIB", 64 * 1024)
    message = repository.parent / "message"
    message.write_bytes(b"x" * 80_000_000)  # 80 kB on its way
    bomb = git(repository, "commit-tree", "-F", str(message), "HEAD^{tree}")
    git(repository, "update-ref", "refs/heads/bomb", bomb)
    with pytest.raises(NotFetched, match="git fetch has failed: "):
        fetched(repository, branch="bomb")
    assert fetched(repository).files


def test_attributes_change_nothing_and_nothing_of_the_repository_runs(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (repository / "policy.toml").write_text("x = 1 # $Format:%H$\n")
    (repository / ".gitattributes").write_text("policy.toml export-subst filter=evil\nguards export-ignore\n")
    git(repository, "config", "filter.evil.smudge", f"touch {ran}")
    git(repository, "config", "core.fsmonitor", f"touch {ran}")
    for hook in ("post-checkout", "pre-auto-gc", "reference-transaction", "post-index-change"):
        (repository / ".git" / "hooks").mkdir(exist_ok=True)
        (repository / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (repository / ".git" / "hooks" / hook).chmod(0o755)
    git(repository, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "-A")
    git(repository, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "commit", "-qm", "attributes")
    ran.unlink(missing_ok=True)
    found = fetched(repository)
    assert found.files == {"policy.toml": b"x = 1 # $Format:%H$\n", "guards/a.sh": b"#!/bin/sh\n"}
    assert not ran.exists()


def test_the_environment_of_the_account_changes_nothing(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / ".gitconfig").write_text(
        f'[core]\n\tfsmonitor = touch {ran}\n[url "file:///evil"]\n\tinsteadOf = file://\n'
    )
    environ = {
        "HOME": str(tmp_path),
        "GIT_CONFIG_GLOBAL": str(tmp_path / ".gitconfig"),
        "GIT_TRACE": str(ran),
        "GIT_EXEC_PATH": str(tmp_path),
        "GIT_SSH_COMMAND": f"touch {ran}",
    }
    assert fetched(repository, environ=environ).files
    assert not ran.exists()


def test_git_is_killed_when_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    def check() -> None:
        if tmp_path.joinpath("asked").exists():
            raise KeyboardInterrupt
        tmp_path.joinpath("asked").touch()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = sources.parse(f"git+http://127.0.0.1:{silent.getsockname()[1]}/p", "stable")
        with pytest.raises(KeyboardInterrupt):
            over_git.fetch(source, Access({}), str(tmp_path), "", check)
        connection, _ = silent.accept()
        connection.settimeout(30)
        while connection.recv(65536):  # its end: git is gone
            pass
        connection.close()
    assert os.listdir(tmp_path) == ["asked"]


def test_secrets_are_in_no_command_line() -> None:
    source = sources.parse("git+https://h.example/p", "stable")
    env = over_git._environment(source, Access({"https_proxy": "http://proxy:1", "LD_PRELOAD": "x"}, "u:p", "", "/ca"))
    assert env["GIT_CONFIG_VALUE_0"] == "Authorization: Basic dTpw"
    assert env["GIT_ALLOW_PROTOCOL"] == "https"
    assert env["GIT_SSL_CAINFO"] == "/ca"
    assert env["https_proxy"] == "http://proxy:1"
    assert "LD_PRELOAD" not in env
    by_ssh = over_git._environment(sources.parse("git@h.example:p", "stable"), Access({}, "", "/a key"))
    assert "-i '/a key' -oIdentitiesOnly=yes" in by_ssh["GIT_SSH_COMMAND"]
    assert "StrictHostKeyChecking=yes" in by_ssh["GIT_SSH_COMMAND"]
