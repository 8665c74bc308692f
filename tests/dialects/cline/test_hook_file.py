"""Cline's folders of programs: which files are hooks, how they run, and how a rewrite becomes the call's again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.dialects.cline import DIALECT as CLINE
from hookproxy.dialects.cline.hook_file import mcp_tool_name
from hookproxy.model.aliases import Alias
from hookproxy.model.errors import ConfigError, UserError
from hookproxy.model.hooks import Event, EventContext, HookSpec, Outcome
from hookproxy.trust.sources import FileContext
from tests.dialects.calls import SESSION, inputs, program

BASH: Final = "#!/usr/bin/env bash\n"


def folder(path: Path, *names: str) -> Path:
    path.mkdir(parents=True)
    for name in names:
        (path / name).write_text(BASH)
        (path / name).chmod(0o700)
    return path


def loaded(path: Path, option: str = "") -> dict[str, list[str]]:
    """The events of each file that is read as one of Cline's hooks."""
    found = read_use(parse_option(option + str(path), str(path.parent)), FileContext({}, str(path.parent)))
    return {
        Path(one.group.source).name: sorted({spec.event.value for spec in one.group.hooks})
        for one in found
        if one.group.dialect.name == "cline" and one.group.source != str(path)
    }


PUBLISHED: Final = {
    # the folders of the README's examples, of the SDK's examples, and of a repository for both systems
    ".clinerules/hooks": (("PreToolUse", "PostToolUse", "README.md"), ["PostToolUse", "PreToolUse"]),
    ".cline/hooks": (("PreToolUse.py", "TaskStart.sh", "SessionShutdown.js"), 3),
    "Documents/Cline/Hooks": (("PreToolUse", "PreToolUse.ps1", "UserPromptSubmit", "lib"), 2),
}


@pytest.mark.parametrize("place", PUBLISHED)
def test_the_programs_of_a_folder_are_its_hooks(place: str, tmp_path: Path) -> None:
    names, found = PUBLISHED[place]
    files = loaded(folder(tmp_path / place, *names))
    assert list(files) == found if isinstance(found, list) else len(files) == found


def test_a_folder_of_another_name_is_read_if_its_files_are_named_by_events(tmp_path: Path) -> None:
    assert loaded(folder(tmp_path / "hooks", "TaskCancel", "x.txt")) == {"TaskCancel": ["Stop"]}


def test_a_folder_with_hook_files_of_another_form_is_not_clines(tmp_path: Path) -> None:
    path = folder(tmp_path / "hooks", "PreToolUse.sh")
    (path / "hooks.json").write_text('{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x"}]}]}}')
    (one,) = read_use(parse_option(str(path), str(tmp_path)), FileContext({}, str(tmp_path)))
    assert (one.group.dialect.name, len(one.group.hooks)) == ("claude", 1)


def test_a_program_in_clines_folder_needs_no_dialect_and_one_elsewhere_does(tmp_path: Path) -> None:
    path = folder(tmp_path / ".clinerules" / "hooks", "PreToolUse") / "PreToolUse"
    assert loaded(path) == {}  # the file itself: its source is the path
    (one,) = read_use(parse_option(str(path), str(tmp_path)), FileContext({}, str(tmp_path)))
    assert (one.group.dialect.name, len(one.group.hooks)) == ("cline", 1)
    assert one.group.hooks[0].cwd == str(tmp_path)
    elsewhere = folder(tmp_path / "x", "PreToolUse") / "PreToolUse"
    with pytest.raises(ConfigError, match="not JSON"):
        list(read_use(parse_option(str(elsewhere), str(tmp_path)), FileContext({}, str(tmp_path))))
    (one,) = read_use(parse_option(f"cline={elsewhere}", str(tmp_path)), FileContext({}, str(tmp_path)))
    assert len(one.group.hooks) == 1


def test_a_folder_without_hooks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="contains no hook file"):
        loaded(folder(tmp_path / "hooks", "README.md"), "cline=")


@pytest.mark.parametrize(
    ("name", "text", "mode", "argv"),
    [
        ("PreToolUse", BASH, 0o700, ()),
        ("PreToolUse", BASH, 0o600, ("/usr/bin/env", "bash")),
        ("PreToolUse", "echo", 0o700, ("bash",)),
        ("PreToolUse.sh", "echo", 0o600, ("bash",)),
        ("PreToolUse.py", "print()", 0o600, ("python3",)),
        ("PreToolUse.mjs", "1", 0o600, ("node",)),
        ("PreToolUse.ts", "1", 0o700, ("bun", "run")),
        ("pretooluse", "\x7fELF\0", 0o700, ()),
        ("PreToolUse", "#!\n", 0o700, ()),
    ],
)
def test_a_program_runs_by_itself_or_by_what_it_is_written_in(
    tmp_path: Path, name: str, text: str, mode: int, argv: tuple[str, ...]
) -> None:
    hook = program(tmp_path / name, text, mode).hooks[0]
    assert hook.argv == (*argv, str(tmp_path / name))
    assert (hook.event_name, hook.timeout, hook.label) == ("PreToolUse", 120.0, name)


def test_a_hook_after_a_call_runs_for_both_outcomes_and_once_for_a_call(tmp_path: Path) -> None:
    hooks = program(tmp_path / "PostToolUse")
    assert [hook.event for hook in hooks.hooks] == [Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE]
    outcome = Outcome(has_result=True)
    (once,) = inputs(hooks, "run_command", {"command": "ls"}, Event.POST_TOOL_USE, outcome)
    assert once.tool_name == "execute_command"


def test_a_hook_runs_once_for_a_tool_that_is_like_none_of_clines(tmp_path: Path) -> None:
    assert [one.tool_name for one in inputs(program(tmp_path / "PreToolUse"), "query", {"sql": ""})] == ["files__query"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("PreToolUsed", "did you mean 'PreToolUse'?"),
        ("guard.sh", "the events are PreToolUse"),
        ("PreToolUse.exe", "Pre"),
    ],
)
def test_a_program_with_another_name_is_an_error(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(ConfigError) as error:
        program(tmp_path / name)
    assert "is a program that is named by its event" in error.value.message
    assert what in error.value.hint


def test_a_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    from hookproxy.dialects.dialect import HookFile

    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        CLINE.read_hook_file(HookFile(str(tmp_path / "PreToolUse"), "", "/repo"))


def test_events_and_programs_that_cannot_run_are_reported(tmp_path: Path) -> None:
    found = program(tmp_path / "UserPromptSubmit")
    assert found.remarks[0].endswith("UserPromptSubmit cannot fire behind MCP: prompts never pass through MCP")
    assert program(tmp_path / "PreToolUse.ps1").notes[0].endswith("it is for PowerShell, which is not supported")


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("fs", "read", "fs__read"),
        ("my fs", "a.b/c", "my_fs__a_b_c"),
        ("s" * 40, "t" * 40, "s" * 40 + "__" + "t" * 13 + "_5b6f0c72"),
    ],
)
def test_the_name_of_a_servers_tool(server: str, tool: str, name: str) -> None:
    assert mcp_tool_name(server, tool) == name
    assert len(name) <= 64


def rewritten(override: object, arguments: object, tool_name: str = "files__t", alias: Alias | None = None) -> object:
    raw = json.dumps(arguments).encode()
    context = EventContext(Event.PRE_TOOL_USE, SESSION, "t", tool_name, "c", raw, alias)
    spec = HookSpec("cline", "f", Event.PRE_TOOL_USE, "g", shell="g")
    return json.loads(CLINE.real_arguments(spec, context, json.dumps(override).encode()))


def test_a_value_that_is_only_the_text_of_the_calls_own_is_that_value() -> None:
    arguments = {"n": 2, "deep": {"a": [1]}, "text": "2", "other": True}
    override = {"n": "2", "deep": '{"a": [1]}', "text": "2", "other": "false"}
    assert rewritten(override, arguments) == {"n": 2, "deep": {"a": [1]}, "text": "2", "other": "false"}


def test_a_diff_becomes_the_two_texts_of_the_edit() -> None:
    edit = {"path": "a", "old_string": "x", "new_string": "y"}
    diff = "------- SEARCH\nx\n=======\nz\n+++++++ REPLACE\n"
    alias = Alias("t", "replace_in_file")
    assert rewritten({"path": "a", "diff": diff}, edit, "replace_in_file", alias) == edit | {"new_string": "z"}
    for wrong in ("x", diff + diff, diff.replace("=======", "======")):
        with pytest.raises(ValueError, match="is not one SEARCH/REPLACE block"):
            rewritten({"diff": wrong}, edit, "replace_in_file", alias)
    own = {"old_string": "x", "new_string": "y", "diff": "z"}
    assert rewritten({"diff": diff, "diff_": "z"}, own, "replace_in_file", alias) == own | {"new_string": "z"}
    assert rewritten({"diff": "x"}, {"diff": "y"}, "replace_in_file", alias) == {"diff": "x"}


def test_an_argument_called_diff_does_not_hide_an_edit(tmp_path: Path) -> None:
    arguments = {"path": "a", "old_string": "x", "new_string": "evil", "diff": "good"}
    _, familiar = inputs(program(tmp_path / "PreToolUse"), "edit_file", arguments)
    seen = familiar.document["preToolUse"]["parameters"]
    assert seen == {"path": "a", "diff": "------- SEARCH\nx\n=======\nevil\n+++++++ REPLACE\n", "diff_": "good"}


def test_a_folder_that_is_named_by_an_event_is_no_hook(tmp_path: Path) -> None:
    place = folder(tmp_path / ".clinerules" / "hooks", "PostToolUse")
    (place / "PreToolUse").mkdir()
    assert list(loaded(place)) == ["PostToolUse"]
