"""`hookproxy init`: the files that it writes work, and existing files stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from hookproxy.cli.init import STARTERS, main, policies, starters
from hookproxy.cli.schema import SCHEMA
from hookproxy.config.load import load
from hookproxy.model.errors import UserError

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, empty."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = command.replace("hookproxy", f"{sys.executable} -m hookproxy", 1)
    return subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("what", STARTERS)
def test_it_writes_the_files_of_configs_and_the_next_command_works(
    project: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([what]) == 0
    output = capsys.readouterr().out
    starter = STARTERS[what]
    assert files(project) == {"hookproxy.toml", *starter.hooks}
    for name in files(project):
        assert f"wrote {name}\n" in output
        written, source = (project / name).read_text("utf-8"), starters() / starter.source / name
        assert written.splitlines()[1:] == source.read_text("utf-8").splitlines()[1:]
        assert os.access(project / name, os.X_OK) == os.access(source, os.X_OK)
    (command,) = [line.removeprefix("next: ") for line in output.splitlines() if line.startswith("next: ")]
    ended = run(command, project)
    assert (ended.returncode, ended.stderr) == (1 if what == "guard" else 0, "")
    ended = run(f"hookproxy check --config {project / 'hookproxy.toml'}", project)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_without_an_argument_it_writes_a_guard(project: Path) -> None:
    assert main([]) == 0
    assert files(project) == {"hookproxy.toml", "hooks/guard.sh"}


def test_editors_find_the_schema_from_the_file(project: Path) -> None:
    main(["audit"])
    text = (project / "hookproxy.toml").read_text("utf-8")
    assert text.startswith(f"#:schema {SCHEMA.as_uri()}\n")
    assert tomllib.loads(text)["audit"]["required"] is True


def test_each_hook_is_commented() -> None:
    for starter in STARTERS.values():
        for name in starter.hooks:
            text = (starters() / starter.source / name).read_text("utf-8")
            assert '"""' in text or "\n# " in text


def test_another_folder_is_created(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["rewrite", "--folder", "deep/er one"])
    assert files(project) == {"deep/er one/hookproxy.toml", "deep/er one/redact.py"}
    assert "then: hookproxy wrap FILE --config 'deep/er one/hookproxy.toml'\n" in capsys.readouterr().out


def test_the_users_own_configuration_needs_no_option(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["guard", "--user"])
    assert files(home) == {".config/hookproxy/hookproxy.toml", ".config/hookproxy/hooks/guard.sh"}
    assert "\nthen: hookproxy wrap FILE\n" in capsys.readouterr().out


def test_it_names_missing_programs(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(project))
    main(["guard"])
    assert "missing: hooks/guard.sh fails without bash and jq\n" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling link"])
def test_if_a_hook_exists_with_another_content_nothing_is_written(project: Path, kind: str) -> None:
    before = something(project, "hooks/guard.sh", kind)
    with pytest.raises(UserError, match="already exists") as raised:
        main(["guard"])
    assert "nothing was written" in raised.value.hint
    assert files(project) == before
    assert kind != "file" or (project / "hooks/guard.sh").read_text() == "mine"


@pytest.mark.parametrize(
    ("kind", "says"),
    [("file", "hookproxy.toml:1"), ("folder", "is a folder"), ("link", "is a link"), ("dangling link", "is a link")],
)
def test_a_configuration_into_which_nothing_can_be_merged_stays(project: Path, kind: str, says: str) -> None:
    before = something(project, "hookproxy.toml", kind)
    with pytest.raises(UserError, match=says) as raised:
        main(["guard"])
    assert raised.value.hint
    assert files(project) == before
    assert kind != "file" or (project / "hookproxy.toml").read_text() == "mine"


def something(project: Path, name: str, kind: str) -> set[str]:
    """Put something of this kind where a file is to be. Returns all names, while no link has been followed."""
    (project / name).parent.mkdir(exist_ok=True)
    other = project.parent / "other"
    match kind:
        case "file":
            (project / name).write_text("mine")
        case "folder":
            (project / name).mkdir()
        case "link":
            other.write_text("mine")
            (project / name).symlink_to(other)
        case _:
            (project / name).symlink_to(other)
    return files(project)


@pytest.mark.parametrize("what", policies())
def test_a_policy_works_where_it_is_written(project: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([what]) == 0
    assert "wrote hookproxy.toml\n" in capsys.readouterr().out
    assert main([what]) == 0, "a second time changes nothing"
    assert "as it is: hookproxy.toml\n" in capsys.readouterr().out
    assert not (project / "hookproxy.toml.hookproxy-backup").exists()
    loaded = load("hookproxy.toml", [], None, {}, str(project))
    assert loaded.groups or loaded.settings.rule_count or loaded.settings.limits


def test_all_policies_together_are_merged_with_what_is_there(project: Path) -> None:
    mine = '# mine\n[permissions] # rules\ndeny = ["mine"] # never\n\n[audit]\nenabled = false # not here\n'
    (project / "hookproxy.toml").write_text(mine)
    (project / "hookproxy.toml").chmod(0o640)
    for name in policies():
        assert main([name]) == 0
    text = (project / "hookproxy.toml").read_text()
    for comment in ("# mine", "# rules", "# never", "# not here", "# No force-push"):
        assert text.count(comment) == 1
    loaded = load("hookproxy.toml", [], None, {}, str(project))
    assert loaded.settings.deny[0] == "mine"
    assert "Bash(npm install:*)" in loaded.settings.deny
    assert len(loaded.settings.limits) == 3
    assert (project / "hookproxy.toml").stat().st_mode & 0o777 == 0o640


def test_a_script_that_its_owner_has_changed_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["network-allow-list"])
    (project / "network.py").write_text("HOSTS = {}\n")
    assert main(["network-allow-list"]) == 0
    assert "yours stays: network.py\n" in capsys.readouterr().out
    assert (project / "network.py").read_text() == "HOSTS = {}\n"


def test_another_value_is_an_error_and_nothing_is_written(project: Path) -> None:
    text = '[[limits]]\ntool = "*search*"\ncalls = 7\nper = "hour"\n'
    (project / "hookproxy.toml").write_text(text)
    with pytest.raises(UserError, match=r"hookproxy.toml:1: limits is .* and cost-limits has it with other values"):
        main(["cost-limits"])
    (project / "hookproxy.toml").write_text('on_failure = "dialect"\n')
    with pytest.raises(UserError, match=r'on_failure is "dialect" here, and guard needs "deny"'):
        main(["guard", "--fail-closed"])
    assert files(project) == {"hookproxy.toml"}


def test_a_hook_is_removed_if_the_configuration_cannot_be_replaced(project: Path) -> None:
    (project / "hookproxy.toml").write_text("strict = true\n")
    os.link(project / "hookproxy.toml", project / "twin")
    with pytest.raises(UserError, match="hard link"):
        main(["guard"])
    assert files(project) == {"hookproxy.toml", "twin"}
    assert not (project / "hooks").exists()


def test_a_configuration_with_a_mistake_gets_nothing(project: Path) -> None:
    (project / "hookproxy.toml").write_text("strikt = true\n")
    with pytest.raises(UserError, match="strikt"):
        main(["cost-limits"])
    assert (project / "hookproxy.toml").read_text() == "strikt = true\n"


def test_the_cases_of_a_policy_come_along(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "configs" / "policies" / "quiet"
    source.mkdir(parents=True)
    (source / "hookproxy.toml").write_text(
        "#:schema x\n\n# Quiet: no shouting. At all.\n\n[permissions]\ndeny = ['x']\n"
    )
    (source / "tests.toml").write_text("[[case]]\nname = 'x'\n")
    monkeypatch.setattr("hookproxy.cli.init.starters", lambda: tmp_path / "configs")
    assert policies()["quiet"].description == "no shouting"
    main(["quiet"])
    assert files(project) == {"hookproxy.toml", "tests/quiet.toml"}


def test_list_fits_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(" ")[0] for line in lines} >= {*STARTERS, *policies(), "no-force-push"}
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80


def test_a_link_to_another_folder_is_not_followed(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    (project / "hooks").symlink_to(other)
    with pytest.raises(UserError, match="cannot be written"):
        main(["guard"])
    assert not files(other)
    assert not (project / "hookproxy.toml").exists()


def test_written_files_are_removed_if_another_cannot_be_written(project: Path) -> None:
    (project / "hooks").write_text("in the way")
    with pytest.raises(UserError, match="hooks: cannot be written: Not a directory"):
        main(["guard"])
    assert files(project) == {"hooks"}


@pytest.mark.parametrize("folder", ["file/below", "/proc/nothing", "a\0b"])
def test_an_impossible_folder_is_an_error_with_a_hint(project: Path, folder: str) -> None:
    (project / "file").touch()
    with pytest.raises(UserError, match=r"cannot be written|already exists") as raised:
        main(["--folder", folder])
    assert raised.value.hint


@pytest.mark.parametrize("arguments", [["gaurd"], ["guard", "lint"], ["--user", "--folder", "x"]])
def test_unknown_arguments_are_an_error(project: Path, arguments: list[str]) -> None:
    with pytest.raises(UserError):
        main(arguments)
    assert not files(project)


def test_a_wheel_holds_what_it_writes() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"configs": "hookproxy/configs"}
    assert starters() == ROOT / "configs"


def test_the_hook_of_the_guard_refuses(project: Path) -> None:
    main(["guard"])
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "execute", "arguments": {"command": "rm -rf /"}}
    server = f"{sys.executable} {ROOT / 'tests/docs/tiny_server.py'}"
    command = f"echo '{json.dumps(call)}' | hookproxy run --config hookproxy.toml -- {server}"
    assert "This command is not allowed here: rm -rf /" in run(command, project).stdout


@pytest.mark.parametrize("name", STARTERS)
def test_with_fail_closed_the_configuration_says_that_failing_hooks_refuse(name: str, project: Path) -> None:
    assert main([name, "--fail-closed"]) == 0
    values = tomllib.loads((project / "hookproxy.toml").read_text())
    assert values["on_failure"] == "deny"
    original = tomllib.loads((starters() / STARTERS[name].source / "hookproxy.toml").read_text())
    assert {key: value for key, value in values.items() if key != "on_failure"} == original
    assert run("hookproxy check --config hookproxy.toml", project).returncode == 0
