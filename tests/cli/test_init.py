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

from hookproxy.cli.init import STARTERS, main, starters
from hookproxy.cli.schema import SCHEMA
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


@pytest.mark.parametrize("name", ["hookproxy.toml", "hooks/guard.sh"])
@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling link"])
def test_if_a_file_exists_nothing_is_written(project: Path, name: str, kind: str) -> None:
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
    before = files(project)
    with pytest.raises(UserError, match="already exists") as raised:
        main(["guard"])
    assert "nothing was written" in raised.value.hint
    assert files(project) == before
    assert kind != "file" or (project / name).read_text() == "mine"
    assert kind != "link" or other.read_text() == "mine"
    assert kind != "dangling link" or not other.exists()


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
    with pytest.raises(UserError, match="hooks already exists"):
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
