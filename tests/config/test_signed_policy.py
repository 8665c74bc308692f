"""The table `[policy]`, and what a signed policy means for a gateway and for a run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hookproxy.bundles import manifest
from hookproxy.bundles.store import Store
from hookproxy.bundles.update import _as_taken, _with
from hookproxy.config import load as loading
from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.model.errors import ConfigError
from hookproxy.model.principal import Principal
from tests.support.managed_folder import ROOT_ONLY, etc
from tests.support.signed_policy import POLICY, bundle, new_key

__all__ = ["etc"]

KEY, OTHER = new_key(), new_key()
ALICE = Principal("uid:1000", "alice", ("trainees",))
BOB = Principal("uid:1001", "bob")


class Machine:
    """A gateway.toml with a table `[policy]`, and the policy that was taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(str(folder / "kept"))

    def take(self, files: dict[str, bytes]) -> Path:
        verified = manifest.verify(files, [KEY.public])
        with self.store.locked():
            path = self.store.unpack(verified, files)
            self.store.write(_with(self.store.state(), _as_taken(verified, "stable"), verified, [KEY.public]))
        return Path(path)

    def table(self, more: str = "", **changes: str) -> str:
        keys = {
            "source": '"https://policy.example.com/{ring}"',
            "keys": f'["{KEY.public.line}"]',
            "folder": f'"{self.folder}/kept"',
            **changes,
        }
        return "\n".join(["[policy]", *(f"{key} = {value}" for key, value in keys.items()), more, ""])

    def load(self, more: str = "", **changes: str) -> GatewayConfig:
        text = f'{self.table(**changes)}{more}\n[servers.db]\ncommand = ["true"]\n[servers.git]\ncommand = ["true"]\n'
        (self.folder / "gateway.toml").write_text(text)
        return load_gateway("gateway.toml", {}, str(self.folder))

    def refusal(self, more: str = "", **changes: str) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(more, **changes)
        assert caught.value.hint
        return caught.value.message


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def policy(text: str, files: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """A bundle with this policy.toml."""
    return bundle(KEY, 3, files={"policy.toml": text.encode(), **(files or {})})


# --- at a gateway ---


def test_its_rules_are_the_administrators_at_each_server(machine: Machine) -> None:
    machine.take(bundle(KEY, 3))
    config = machine.load('[permissions]\nallow = ["drop_*"]\n')
    for server in config.servers.values():
        managed = server.loaded.settings.managed
        assert managed is not None
        assert managed.deny == ("drop_*",)
        assert server.loaded.settings.bundle == config.bundle
    assert config.closed == ""
    assert config.bundle is not None
    assert (config.bundle.version, config.bundle.ring, len(config.bundle.digest)) == (3, "stable", 64)
    assert config.source is not None
    assert config.source.refresh_seconds == 300.0


def test_it_has_rules_for_single_people_and_servers(machine: Machine) -> None:
    machine.take(
        policy("""
[permissions]
deny = ["drop_*"]
[[permissions.for]]
users = ["@trainees"]
deny = ["write_*"]
[servers.db]
on_ask = "deny"
[servers.db.permissions]
ask = ["select_*"]
[[servers.db.permissions.for]]
users = ["bob"]
deny = ["update_*"]
[servers.nowhere.permissions]
deny = ["*"]
""")
    )
    config = machine.load()
    db, git = config.servers["db"], config.servers["git"]
    assert (db.settings_for(ALICE).deny, db.settings_for(BOB).deny) == (("write_*",), ("update_*",))
    assert (git.settings_for(ALICE).deny, git.settings_for(BOB).deny) == (("write_*",), ())
    assert db.loaded.settings.managed is not None
    assert git.loaded.settings.managed is not None
    assert (db.loaded.settings.managed.ask, git.loaded.settings.managed.ask) == (("select_*",), ())
    assert (db.loaded.settings.managed.deny, git.loaded.settings.managed.deny) == (("drop_*",), ("drop_*",))
    assert {who for _, who in config.people} == {"@trainees", "bob"}


def test_its_default_is_opened_by_its_own_rules_only(machine: Machine) -> None:
    machine.take(
        policy("""
[permissions]
default = "deny"
allow = ["list_*"]
[[permissions.for]]
users = ["bob"]
allow = ["read_*"]
[servers.db.permissions]
default = "allow"
[[servers.db.permissions.for]]
users = ["@trainees"]
default = "ask"
""")
    )
    config = machine.load('[permissions]\nallow = ["*"]\n[[permissions.for]]\nusers = ["bob"]\nallow = ["x"]\n')
    for server in config.servers.values():
        for user, allowed in ((ALICE, ("list_*",)), (BOB, ("list_*", "read_*"))):
            settings = server.settings_for(user)
            assert settings.managed is not None
            assert (settings.default_permission, settings.managed.default_permission) == ("allow", "deny")
            assert settings.managed.allow == allowed


def test_it_does_not_open_the_gateways_own_default(machine: Machine) -> None:
    machine.take(policy('[[permissions.for]]\nusers = ["bob"]\nallow = ["read_*"]\ndeny = ["x"]\n'))
    for server in machine.load('[permissions]\ndefault = "deny"\n').servers.values():
        settings = server.settings_for(BOB)
        assert (settings.default_permission, settings.allow, settings.deny) == ("deny", (), ("x",))


def test_a_changed_policy_is_another_version_of_the_configuration(machine: Machine) -> None:
    machine.take(bundle(KEY, 3))
    first = machine.load()
    machine.take(bundle(KEY, 4))
    second = machine.load()
    assert first.version != second.version
    assert first.policy != second.policy


def test_its_hooks_start_in_its_folder(machine: Machine) -> None:
    hook = '[[hooks.PreToolUse]]\ncommand = "./guard.sh"\n'
    folder = machine.take(policy(hook, {"guard.sh": b"#!/bin/sh\n"}))
    group = machine.load().servers["db"].loaded.groups[-1]
    assert group.managed
    assert group.source == f"{folder}/policy.toml"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[[use]]\nfile = "/etc/passwd"\ndialect = "claude"\n', "is not a file of the policy"),
        ('[[use]]\nfile = "../../state.json"\ndialect = "claude"\n', "is not a file of the policy"),
        ('[[use]]\nfile = "manifest.json.sig"\ndialect = "claude"\n', "not"),
        ('[policy]\nsource = "https://x/y"\nkeys = ["KEY"]\n', "a policy cannot name another one"),
        ("[permissions]\ndney = []\n", "dney"),
        ("[gateway]\n", "gateway"),
        ('[servers.db]\ncommand = ["id"]\n', "command"),
        ("[servers.db]\nmanaged_only = true\n", "is for all servers"),
        ('[[permissions.for]]\nusers = ["*"]\ndeny = ["x"]\n', "is not the name of a user"),
        ("x = [", "toml"),
    ],
)
def test_what_a_policy_must_not_say_is_refused(machine: Machine, text: str, why: str) -> None:
    machine.take(policy(text.replace("KEY", KEY.public.line)))
    assert why in machine.refusal()


def test_without_a_policy_nothing_may_pass_unless_the_file_says_so(machine: Machine) -> None:
    assert "no policy was fetched yet" in machine.load().closed
    config = machine.load(on_missing='"allow"')
    assert (config.closed, config.bundle) == ("", None)
    assert any("only the local configuration is in force (on_missing)" in note for note in config.notes)


def test_an_expired_policy_lets_nothing_pass_unless_the_file_says_so(machine: Machine) -> None:
    machine.take(bundle(KEY, 3, seconds=-60))
    assert "the policy, version 3 of stable, has expired at 20" in machine.load().closed
    config = machine.load(on_expired='"keep"')
    assert config.closed == ""
    assert config.bundle is not None
    assert any("has expired at" in note for note in config.notes)
    assert config.bundle.expires < time.time()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"keys": f'["{OTHER.public.line}"]'}, "is not signed by one of the keys"),
        ({"min_version": "4"}, "version 3 is lower than min_version, 4"),
        ({"ring": '"canary"'}, "no policy was fetched yet"),
    ],
)
def test_a_policy_that_was_taken_is_used_only_as_the_file_says_now(
    machine: Machine, changes: dict[str, str], why: str
) -> None:
    machine.take(bundle(KEY, 3))
    assert why in machine.load(**changes).closed


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda path: path.write_text("# nothing\n"), "policy.toml is not the file that manifest.json names"),
        (lambda path: path.unlink(), "policy.toml is missing"),
        (lambda path: path.with_name("json.py").write_text("import os\n"), "json.py is not in manifest.json"),
        (lambda path: shutil.rmtree(path.parent), "is not there any more"),
    ],
)
def test_a_policy_that_was_changed_on_the_disk_is_none(
    machine: Machine, change: Callable[[Path], object], why: str
) -> None:
    folder = machine.take(bundle(KEY, 3))
    folder.chmod(0o755)
    (folder / "policy.toml").chmod(0o644)
    change(folder / "policy.toml")
    assert why in machine.load().closed


@pytest.mark.parametrize("on_missing", ['"deny"', '"allow"'])
def test_a_policy_that_is_tried_and_could_not_be_in_force_does_not_work(machine: Machine, on_missing: str) -> None:
    folder = machine.take(bundle(KEY, 3))
    folder.chmod(0o755)
    (folder / "policy.toml").chmod(0o644)
    (folder / "policy.toml").write_text("# nothing\n")
    machine.load(on_missing=on_missing)
    with pytest.raises(ConfigError, match=r"policy\.toml is not the file that"):
        load_gateway("gateway.toml", {}, str(machine.folder), str(folder))


def test_a_policy_that_others_can_change_stops_the_start(machine: Machine) -> None:
    folder = machine.take(bundle(KEY, 3))
    (folder / "policy.toml").chmod(0o666)
    assert "is writable by others" in machine.refusal()
    (folder / "policy.toml").chmod(0o444)
    (machine.folder / "kept").chmod(0o777)
    assert "is writable by others" in machine.refusal()


# --- the table ---


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source": '"policy.tar.gz"'}, "policy.source: policy.tar.gz is not the address of a policy"),
        ({"source": '"http://p.example/x"'}, "policy.source"),
        ({"keys": '["ssh-rsa AAAA"]'}, "policy.keys[0]: has the type ssh-rsa"),
        ({"keys": '["ssh-ed25519 AAAA"]'}, "policy.keys[0]: is cut off"),
        ({"keys": '["missing.pub"]'}, "missing.pub: there is no such file"),
        ({"keys": '["empty.pub"]'}, "policy.keys: the file has no key"),
        ({"keys": "[]"}, "policy.keys"),
        ({"ring": '"a b"'}, "policy.ring"),
        ({"min_version": "0"}, "policy.min_version"),
        ({"refresh_seconds": "0"}, "policy.refresh_seconds"),
        ({"credential": '"a-secret"'}, "policy.credential"),
        ({"on_missing": '"ignore"'}, "policy.on_missing"),
        ({"sauce": '"x"'}, "policy.sauce"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(machine: Machine, changes: dict[str, str], why: str) -> None:
    (machine.folder / "empty.pub").write_text("# none\n")
    assert why in machine.refusal(**changes)


def test_keys_may_be_in_a_file(machine: Machine) -> None:
    machine.take(bundle(KEY, 3))
    (machine.folder / "release.pub").write_text(f"# ours\n{OTHER.public.line}\n{KEY.public.line}\n")
    assert machine.load(keys='["release.pub"]').bundle is not None


def test_a_policy_is_for_all_servers(machine: Machine) -> None:
    text = machine.table().replace("[policy]", "[servers.x.policy]")
    assert "is for all servers" in machine.refusal(f'[servers.x]\ncommand = ["true"]\n{text}')


def test_a_users_own_file_names_no_policy(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MANAGED_FOLDER", str(machine.folder / "nothing"))
    (machine.folder / "hookproxy.toml").write_text(machine.table())
    with pytest.raises(ConfigError, match="only the administrator may set"):
        loading.load("hookproxy.toml", [], None, {}, str(machine.folder))


# --- in a run ---


@pytest.fixture
def administered(etc: Path) -> Machine:
    return Machine(etc)


def run(machine: Machine, text: str = "") -> loading.Loaded:
    (machine.folder / "managed.toml").write_text(text or machine.table())
    return loading.load(None, [], None, {"HOME": str(machine.folder)}, "/")


@ROOT_ONLY
def test_a_run_has_the_policy_beside_the_administrators_file(administered: Machine) -> None:
    administered.take(bundle(KEY, 3))
    loaded = run(administered, administered.table() + '[permissions]\ndeny = ["die"]\n')
    assert loaded.settings.managed is not None
    assert loaded.settings.managed.deny == ("die", "drop_*")
    assert loaded.settings.bundle is not None
    assert loaded.settings.bundle.version == 3
    assert loaded.managed is not None
    assert loaded.managed.files[-1].endswith("/policy.toml")


@ROOT_ONLY
def test_a_run_says_what_of_a_policy_is_for_gateways(administered: Machine) -> None:
    text = POLICY.decode() + '[[permissions.for]]\nusers = ["bob"]\ndeny = ["x"]\n[servers.db]\nstrict = true\n'
    administered.take(policy(text))
    remarks = [remark for remark in run(administered).remarks if "at gateways only" in remark]
    assert [remark.split(": ")[1] for remark in remarks] == ["servers.db", "permissions.for"]


@ROOT_ONLY
def test_a_run_does_not_start_without_a_policy_that_must_be_there(administered: Machine) -> None:
    with pytest.raises(ConfigError, match="no policy was fetched yet") as caught:
        run(administered)
    assert caught.value.hint.endswith("hookproxy policy update")
    loaded = run(administered, administered.table(on_missing='"allow"'))
    assert any("only the local configuration" in note for note in loaded.notes)
    assert loaded.settings.bundle is None


@ROOT_ONLY
def test_the_files_of_a_runs_policy_must_belong_to_root(administered: Machine) -> None:
    folder = administered.take(bundle(KEY, 3))
    os.chown(folder / "policy.toml", 65534, 65534)
    with pytest.raises(ConfigError, match="belongs to user 65534"):
        run(administered)


@ROOT_ONLY
def test_two_policies_are_one_too_many(administered: Machine) -> None:
    (administered.folder / "managed.d").mkdir()
    (administered.folder / "managed.d" / "a.toml").write_text(administered.table())
    with pytest.raises(ConfigError, match="names a policy, too"):
        run(administered)
