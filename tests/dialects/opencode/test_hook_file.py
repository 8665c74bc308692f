"""Which modules are plugins of OpenCode, and what runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

import hookproxy.dialects.opencode
from hookproxy.config.hook_files import parse_option, read_use
from hookproxy.dialects.dialect import HookFile
from hookproxy.dialects.opencode import DIALECT
from hookproxy.model.errors import ConfigError, UserError
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.trust.sources import FileContext

TEXT = 'export const P = async () => ({ "tool.execute.before": async () => {} })\n'


def loaded(folder: Path, option: str, runtime: str = "node") -> list[tuple[str, str, tuple[str, ...]]]:
    """The event, file and program of each hook."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    if runtime:
        (programs / runtime).write_text("#!/bin/sh\n")
        (programs / runtime).chmod(0o700)
    context = FileContext({"HOME": "/nowhere", "PATH": str(programs)}, str(folder))
    files = [*read_use(parse_option(option, str(folder)), context)]
    return [(hook.event_name, hook.source, hook.argv) for file in files for hook in file.group.hooks]


@pytest.mark.parametrize("folder", [".opencode/plugin", ".opencode/plugins", "mine"])
def test_each_module_of_a_folder_is_a_plugin_in_the_order_of_names(tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True)
    for name in ("b.js", "a.ts", "c.mts", "types.d.ts", "package.json"):
        (place / name).write_text(TEXT)
    found = loaded(tmp_path, f"opencode={folder}")
    assert [Path(source).name for event, source, _ in found if event == "tool.execute.before"] == [
        "a.ts",
        "b.js",
        "c.mts",
    ]


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    place = tmp_path / ".opencode" / "plugin"
    place.mkdir(parents=True)
    (place / "a.ts").write_text(TEXT)
    (place / "guard.ts").symlink_to(tmp_path / "gone.ts")
    with pytest.raises(UserError, match="there is no such file"):
        loaded(tmp_path, "opencode=.opencode/plugin")


def test_a_module_is_recognised_by_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "guard.ts").write_text(TEXT)
    found = loaded(tmp_path, "guard.ts")
    assert [event for event, _, _ in found] == ["tool.execute.before", "tool.execute.after", "tool.execute.after"]


def test_bun_runs_it_where_there_is_bun(tmp_path: Path) -> None:
    (tmp_path / "guard.ts").write_text(TEXT)
    loaded(tmp_path, "guard.ts")
    assert {Path(argv[0]).name for _, _, argv in loaded(tmp_path, "guard.ts", "bun")} == {"bun"}


def test_what_runs_it_reads_no_configuration_of_the_project_and_fetches_nothing(tmp_path: Path) -> None:
    (tmp_path / "bun").write_text("#!/bin/sh\n")
    (tmp_path / "bun").chmod(0o700)
    (before, *_) = DIALECT.read_hook_file(HookFile("/p/x.js", TEXT, "/p", environ={"PATH": str(tmp_path)})).hooks
    assert before.cwd == str(Path(hookproxy.dialects.opencode.__file__).parent)
    assert before.argv[1] == "--no-install"


def test_without_a_program_that_runs_it_nothing_starts(tmp_path: Path) -> None:
    (tmp_path / "guard.ts").write_text(TEXT)
    with pytest.raises(UserError, match=r"Bun, or Node 22\.18 and newer, and PATH has neither"):
        loaded(tmp_path, "opencode=guard.ts", "")


def test_another_file_is_not_a_plugin(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a module"):
        DIALECT.read_hook_file(HookFile(str(tmp_path / "x.json"), "{}", "/"))


def test_a_module_without_functions_for_tools_is_reported(tmp_path: Path) -> None:
    file = HookFile(
        str(tmp_path / "x.js"), "export const P = async () => ({ event: async () => {} })\n", "/", environ={"PATH": ""}
    )
    with pytest.raises(ConfigError):
        DIALECT.read_hook_file(file)
    (tmp_path / "node").write_text("#!/bin/sh\n")
    (tmp_path / "node").chmod(0o700)
    hooks = DIALECT.read_hook_file(HookFile(file.path, file.text, "/", environ={"PATH": str(tmp_path)}))
    assert "names neither tool.execute.before nor tool.execute.after" in hooks.notes[0]


def test_people_read_the_module_and_not_what_runs_it() -> None:
    spec = HookSpec(
        dialect="opencode",
        source="/p/env.js",
        event=Event.PRE_TOOL_USE,
        label="env.js",
        argv=("/usr/bin/node", "/x/plugin_host.mjs", "/p/env.js"),
        type="worker",
        process="/p/env.js",
    )
    assert (spec.module, spec.target) == ("/p/env.js", "/p/env.js")
    of_a_person = replace(spec, process="", argv=("python3", "/p/guard.py"))
    assert (of_a_person.module, of_a_person.target) == ("", "python3 /p/guard.py")
