"""Which hook files are named, and for which dialect; test_load has further tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.hook_files import dialect_named, parse_option, read_use
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import ConfigError, UserError
from hookproxy.trust.sources import FileContext

CLAUDE = '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./guard.sh"}]}]}}'


@pytest.mark.parametrize(
    ("item", "dialect", "file"),
    [("a.json", None, "a.json"), ("claude=a.json", "claude", "a.json"), ("x/y=z.json", None, "x/y=z.json")],
)
def test_the_value_of_the_hooks_option_is_parsed(tmp_path: Path, item: str, dialect: str | None, file: str) -> None:
    use = parse_option(item, str(tmp_path))
    assert (use.dialect.name if use.dialect else None, use.file, use.place) == (dialect, file, f"--hooks {item}")


def test_an_unknown_dialect_is_an_error() -> None:
    assert dialect_named("lime", "here") is DIALECTS["lime"]
    with pytest.raises(ConfigError, match="here: there is no dialect 'Lime'"):
        dialect_named("Lime", "here")
    with pytest.raises(UserError, match="no file is named"):
        parse_option("lime=", "/")


def test_every_hook_file_that_is_read_is_recorded(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(CLAUDE)
    file_context = FileContext({}, str(tmp_path))
    groups = [one.group for one in read_use(parse_option(".", str(tmp_path)), file_context)]
    assert (
        [group.source for group in groups]
        == list(file_context.files_read)
        == [f"{tmp_path}/a.json", f"{tmp_path}/b.json"]
    )


@pytest.mark.parametrize("manifest", ["plugin.json", ".github/plugin/plugin.json", ".claude-plugin/plugin.json"])
@pytest.mark.parametrize("file", ["hooks.json", "hooks/hooks.json"])
def test_the_hooks_of_a_copilot_plugin_find_its_files_and_run_in_the_working_directory(
    tmp_path: Path, manifest: str, file: str
) -> None:
    root = tmp_path / "plugin"
    for name, text in ((manifest, "{}"), (file, '{"version": 1, "hooks": {"preToolUse": [{"bash": "./guard.sh"}]}}')):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    file_context = FileContext({}, str(tmp_path))
    (found,) = read_use(parse_option(f"copilot@current=plugin/{file}", str(tmp_path)), file_context)
    (hook,) = found.group.hooks
    assert hook.cwd == str(tmp_path)
    assert dict(hook.env) == {
        "COPILOT_PROJECT_DIR": str(tmp_path),
        "COPILOT_PLUGIN_ROOT": str(root),
        "PLUGIN_ROOT": str(root),
        "CLAUDE_PLUGIN_ROOT": str(root),
    }
