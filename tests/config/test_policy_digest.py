"""What the digest of a gateway's policy covers, and what a reload says has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config import policy_digest
from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.config.policy_digest import VERSION, changed_keys, changed_parts, changed_since
from tests.support.managed_folder import ROOT_ONLY, write

GUARD = "import helper\nhelper.check()\n"
TEXT = """
[permissions]
deny = ["delete_*"]

[[hooks.PreToolUse]]
command = "./guard.py"

[servers.git]
command = ["cat"]
env = { TOKEN = "hunter2-hunter2" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guard.py").write_text(f"#!/usr/bin/env python3\n{GUARD}")
    (tmp_path / "guard.py").chmod(0o755)
    (tmp_path / "helper.py").write_text("def check(): ...\n")
    return tmp_path


def load(folder: Path, text: str = TEXT) -> GatewayConfig:
    (folder / "gateway.toml").write_text(text)
    return load_gateway("gateway.toml", {}, str(folder))


@pytest.mark.parametrize("name", ["guard.py", "helper.py"])
def test_a_script_and_what_it_imports_are_part_of_the_policy(folder: Path, name: str) -> None:
    first = load(folder)
    (folder / name).write_text((folder / name).read_text() + "# changed\n")
    second = load(folder)
    assert first.version != second.version
    assert first.policy != second.policy
    assert changed_parts(first.parts, second.parts, first.path) == [f"changed: {folder / name}"]
    assert load(folder).version == second.version


def test_a_file_that_a_hook_only_names_makes_another_version_and_no_other_shared_policy(folder: Path) -> None:
    (folder / "list.txt").write_text("a\n")
    text = TEXT.replace('"./guard.py"', '"./guard.py list.txt"')
    first = load(folder, text)
    (folder / "list.txt").write_text("b\n")
    second = load(folder, text)
    assert first.version != second.version
    assert first.policy == second.policy  # on another machine, it may be another state of the hook
    assert changed_parts(first.parts, second.parts, first.path) == [f"changed: {folder / 'list.txt'}"]


def test_a_script_that_is_missing_is_told(folder: Path) -> None:
    first = load(folder)
    (folder / "guard.py").unlink()
    assert f"changed: {folder / 'guard.py'} (it is missing now)" in changed_parts(
        first.parts, load(folder).parts, first.path
    )


def test_the_version_and_the_tables_of_names_are_part_of_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(folder)
    monkeypatch.setattr(policy_digest, "__version__", "99")
    second = load(folder)
    assert first.version != second.version
    assert first.policy == second.policy  # gateways that are replaced one after another go on with approvals
    assert changed_parts(first.parts, second.parts, first.path) == ["changed: this version of hookproxy"]
    monkeypatch.setattr(policy_digest, "_TABLES", policy_digest._TABLES[1:])
    assert load(folder).version != second.version


@ROOT_ONLY
def test_the_administrators_files_and_their_scripts_are_part_of_it(folder: Path, etc: Path) -> None:
    first = load(folder)
    write(etc / "managed.toml", '[permissions]\ndeny = ["x"]\n[[hooks.PreToolUse]]\ncommand = "./m.sh"\n')
    script = write(etc / "m.sh", "#!/bin/sh\n", 0o755)
    second = load(folder)
    assert first.version != second.version
    script.write_text("#!/bin/sh\nexit 2\n")
    third = load(folder)
    assert changed_parts(second.parts, third.parts, first.path) == [f"changed: {script}"]


def test_a_changed_rule_is_told_and_the_value_of_no_other_key_is(folder: Path) -> None:
    first = load(folder)
    more = "[servers.git.audit]\nrequired = true\n[servers.new]\ncommand = ['cat']\n[servers.git]"
    text = TEXT.replace("delete_*", "drop_*").replace("hunter2", "secret0").replace("[servers.git]", more)
    second = load(folder, text)
    said = changed_keys(first.tables, second.tables)
    assert said == [
        "permissions.deny: removed delete_*",
        "permissions.deny: added drop_*",
        "servers.git.env.TOKEN: changed",
        "servers.git.audit: new",
        "servers.new: new",
    ]


def test_tables_of_an_array_are_told_by_their_numbers() -> None:
    old = {"limits": [{"tool": "*", "calls": 1}, {"tool": "x"}], "x": {"allow": ["a", "b"]}, "y": 1}
    new = {"limits": [{"tool": "*", "calls": 2}], "x": {"allow": ["b", "a"]}}
    said = ["limits[0].calls: changed", "limits[1]: removed", "x.allow: in another order", "y: removed"]
    assert changed_keys(old, new) == said
    assert changed_keys(new, old)[1] == "limits[1]: new"


def test_what_is_told_has_an_end() -> None:
    said = changed_keys({}, {f"key{number}": number for number in range(100)})
    assert said[-1] == "and 60 more"
    assert len(said) == 41


def test_a_file_that_changes_under_the_policy_is_found(folder: Path) -> None:
    config = load(folder)
    assert changed_since(config.parts) == []
    (folder / "helper.py").write_text("def check(): print()\n")
    (folder / "guard.py").touch()  # the content is the same
    assert changed_since(config.parts) == [str(folder / "helper.py")]
    (folder / "guard.py").unlink()
    assert set(changed_since(config.parts)) == {str(folder / "helper.py"), str(folder / "guard.py")}
    assert VERSION in config.parts
