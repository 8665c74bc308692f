"""`hookproxy policy` as whoever publishes a policy sees it, and as an administrator does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from hookproxy.archives import archive
from hookproxy.bundles import manifest
from hookproxy.cli.main import main
from hookproxy.signing.keys import parse_public
from tests.support.managed_folder import NOBODY, ROOT_ONLY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for name in ("release", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name], cwd=tmp_path, check=True)
    (tmp_path / "acme" / "guards").mkdir(parents=True)
    (tmp_path / "acme" / "policy.toml").write_text('[permissions]\ndeny = ["drop_*"]\n')
    (tmp_path / "acme" / "guards" / "a.sh").write_text("#!/bin/sh\n")
    (tmp_path / "acme" / "guards" / "a.sh").chmod(0o755)
    return tmp_path


class Verb:
    """Runs `hookproxy policy`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        """What it prints: with a status other than 0, also on standard error."""
        ended = main(["policy", *arguments])
        printed = self._capsys.readouterr()
        assert ended == status, printed
        return printed.out + (printed.err if status else "")


@pytest.fixture
def policy(capsys: pytest.CaptureFixture[str]) -> Verb:
    return Verb(capsys)


def pack(policy: Verb, *more: str, key: str = "release", status: int = 0) -> str:
    return policy("pack", "acme", "--key", key, "-o", "b.tar.gz", *more, status=status)


# --- making one ---


def test_a_bundle_has_the_files_of_the_folder_and_their_manifest(folder: Path, policy: Verb) -> None:
    (folder / "acme" / ".gitignore").write_text("x")
    (folder / "acme" / "__pycache__").mkdir()
    (folder / "acme" / "__pycache__" / "a.pyc").write_text("x")
    assert "version 7 for canary, stable, until 20" in pack(
        policy, "--version", "7", "--ring", "canary", "--ring", "stable"
    )
    files = archive.read((folder / "b.tar.gz").read_bytes())
    assert set(files) == {"policy.toml", "guards/a.sh", "manifest.json", "manifest.json.sig"}
    verified = manifest.verify(files, [parse_public((folder / "release.pub").read_text())])
    assert verified.manifest.rings == ("canary", "stable")
    assert verified.manifest.files["guards/a.sh"].executable
    assert "version 8 for stable" in pack(policy)
    assert "version 9 for stable" in policy("sign", "acme", "--key", "release", "--days", "1")
    assert "signed with SHA256:" in policy("verify", "acme", "--keys", "release.pub")


def test_a_folder_that_is_signed_already_is_only_packed(folder: Path, policy: Verb) -> None:
    policy("sign", "acme", "--key", "release")
    assert policy("pack", "acme", "-o", "b.tar.gz").startswith("wrote b.tar.gz: 4 files")
    assert "version 1" in policy("verify", "b.tar.gz", "--keys", "release.pub")


@pytest.mark.parametrize(
    ("name", "why"),
    [("a b", "other characters"), ("Policy.toml", "differ only in their case"), ("policy.toml/x", "")],
)
def test_a_name_that_no_machine_would_take_is_refused(folder: Path, policy: Verb, name: str, why: str) -> None:
    if not why:
        (folder / "acme" / "policy.toml").unlink()
        (folder / "acme" / "policy.toml").mkdir()
        why = "names no policy.toml"
    (folder / "acme" / name).write_text("")
    assert why in pack(policy, status=2)
    assert not (folder / "b.tar.gz").exists()


def test_a_link_is_refused_and_named(folder: Path, policy: Verb) -> None:
    (folder / "acme" / "guards" / "link").symlink_to("/etc/passwd")
    assert "acme/guards/link: is not a plain file" in pack(policy, status=2)
    (folder / "acme" / "guards" / "link").unlink()
    (folder / "acme" / "more").symlink_to("/etc")
    assert "acme/more: is not a plain file" in pack(policy, status=2)


def test_a_private_key_in_the_folder_is_not_published(folder: Path, policy: Verb) -> None:
    os.rename("release", "acme/release")
    printed = policy("pack", "acme", "--key", "acme/release", "-o", "b.tar.gz", status=2)
    assert "acme/release: is a private key" in printed
    assert not (folder / "b.tar.gz").exists()


def test_what_is_missing_is_named_with_a_hint(folder: Path, policy: Verb) -> None:
    for words, why in (
        (["pack", "nothing", "--key", "release", "-o", "x"], "nothing: cannot be read: No such file"),
        (["pack", "acme", "--key", "nothing", "-o", "x"], "nothing: cannot be read"),
        (["pack", "acme", "--key", "release.pub", "-o", "x"], "release.pub: is a public key: name the private one"),
        (["verify", "nothing", "--keys", "release.pub"], "nothing: cannot be read"),
        (["verify", "acme/policy.toml", "--keys", "release.pub"], "not a tar file"),
        (["verify", "acme", "--keys", "release"], "line 1"),
        (["verify", "acme", "--keys", "release.pub"], "it has no manifest.json"),
        (["keys", "acme", "--key", "release", "acme/policy.toml"], "line 1"),
        (["sign", "acme", "--key", "release", "--ring", "a b"], "rings"),
        (["sign", "acme", "--key", "release", "--version", "-1"], "version"),
        (["pack", "acme", "--key", "release", "-o", "no/x"], "no/x: cannot be written"),
        (["frob"], "there is no `hookproxy policy frob`"),
        ([], "must follow policy"),
    ):
        printed = policy(*words, status=2)
        assert why in printed
        assert "\nhint: " in printed


def test_a_bundle_for_other_keys_or_another_ring_or_that_has_expired_is_not_verified(
    folder: Path, policy: Verb
) -> None:
    pack(policy)
    assert "not signed by one of the keys" in policy("verify", "b.tar.gz", "--keys", "other.pub", status=2)
    assert "not for canary" in policy("verify", "b.tar.gz", "--keys", "release.pub", "--ring", "canary", status=2)
    pack(policy, "--days", "-1")
    assert "has expired" in policy("verify", "b.tar.gz", "--keys", "release.pub", status=2)


def test_keys_change_hands_and_the_old_one_signs_nothing_more(folder: Path, policy: Verb) -> None:
    assert "counts from now on" in policy("keys", "acme", "--key", "release", "other.pub")
    assert "nobody would take it" in pack(policy, status=2)
    pack(policy, key="other")
    assert "version 1" in policy("verify", "b.tar.gz", "--keys", "release.pub")
    policy("keys", "acme", "--key", "other", "release.pub")
    pack(policy)
    files = archive.read((folder / "b.tar.gz").read_bytes())
    assert {"keys/1.json", "keys/1.json.sig", "keys/2.json", "keys/2.json.sig"} <= set(files)
    assert "version 2" in policy("verify", "b.tar.gz", "--keys", "release.pub")


# --- using one ---


@pytest.fixture
def gateway(folder: Path, policy: Verb) -> Path:
    """A gateway.toml for a policy in a git repository, of which two versions were taken."""
    key = (folder / "release.pub").read_text().strip()
    source = f'source = "git+file://{folder}/acme"\nkeys = ["{key}"]\nfolder = "kept"\n'
    (folder / "gateway.toml").write_text(f'[policy]\n{source}[servers.s]\ncommand = ["true"]\n')
    (folder / "kept").mkdir()
    subprocess.run(["git", "init", "-q", "-b", "stable", "acme"], cwd=folder, check=True)
    for _ in range(2):
        publish(folder, policy)
        policy("update", "--config", "gateway.toml")
    return folder


def publish(folder: Path, policy: Verb) -> None:
    policy("sign", "acme", "--key", "release")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["add", "-A"], ["commit", "-q", "-m", "policy"]):
        subprocess.run(["git", *who, *words], cwd=folder / "acme", check=True)


@pytest.mark.slow
def test_status_says_what_is_in_force_and_what_went_wrong(gateway: Path, policy: Verb) -> None:
    on = ("--config", "gateway.toml")
    printed = policy("status", *on)
    assert "version   2\n" in printed
    assert "kept      version 1\n" in printed
    assert "failure" not in printed
    assert policy("update", "--quiet", *on) == ""
    publish(gateway, policy)
    (gateway / "acme" / "policy.toml").write_text("")
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "evil"], cwd=gateway / "acme", check=True
    )
    assert "policy.toml is not the file that manifest.json names" in policy("update", *on, status=2)
    assert "(1 in a row)" in policy("status", *on, status=1)
    state = json.loads(policy("status", "--json", *on, status=1))
    assert (state["in_force"]["version"], state["failures"], state["rollback"]) == (2, 1, None)


@pytest.mark.slow
def test_rollback_and_resume_say_what_is_in_force(gateway: Path, policy: Verb) -> None:
    on = ("--config", "gateway.toml")
    assert policy("resume", *on) == "nothing was rolled back\n"
    assert policy("rollback", *on).startswith("version 1 of stable is in force, and no longer version 2\n")
    assert "until a newer version than 2 comes" in policy("status", *on)
    assert "there is no older version" in policy("rollback", *on, status=2)
    assert policy("resume", *on) == "version 2 is in force again\n"
    assert "no version 9" in policy("rollback", "9", *on, status=2)


@pytest.mark.slow
def test_a_policy_with_a_hook_that_cannot_run_here_is_not_taken(gateway: Path, policy: Verb) -> None:
    (gateway / "acme" / "policy.toml").write_text('[[hooks.PreToolUse]]\ncommand = "./guards/b.sh"\n')
    publish(gateway, policy)
    printed = policy("update", "--config", "gateway.toml", status=2)
    assert "version 3 is refused, because it does not work here" in printed
    assert "version   2\n" in policy("status", "--config", "gateway.toml", status=1)


def test_a_file_without_a_policy_is_named(folder: Path, policy: Verb) -> None:
    (folder / "gateway.toml").write_text('[servers.s]\ncommand = ["true"]\n')
    assert "gateway.toml: names no policy" in policy("status", "--config", "gateway.toml", status=2)


@pytest.mark.slow
def test_a_folder_that_nobody_has_made_is_named(gateway: Path, policy: Verb) -> None:
    os.rename("kept", "away")
    assert "the gateway makes it when it starts" in policy("status", "--config", "gateway.toml", status=2)


@pytest.mark.slow
@ROOT_ONLY
@pytest.mark.parametrize("owner", [0, NOBODY])
def test_root_acts_as_nobody_whom_the_account_of_the_gateway_chooses(gateway: Path, policy: Verb, owner: int) -> None:
    victims = gateway / "victims"
    (victims / "bundles" / "work").mkdir(parents=True)
    os.chown(victims, owner, owner)
    (gateway / "var").mkdir()
    (gateway / "var" / "kept").symlink_to(victims)
    for path in ("var", "var/kept"):
        os.chown(path, 4242, 4242, follow_symlinks=False)
    text = (gateway / "gateway.toml").read_text()
    (gateway / "gateway.toml").write_text(text.replace('folder = "kept"', 'folder = "var/kept"'))
    assert "belongs to user 4242" in policy("update", "--config", "gateway.toml", status=2)
    assert os.listdir(victims) == ["bundles"]
    assert os.listdir(victims / "bundles") == ["work"]
