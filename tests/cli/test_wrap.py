"""`hookproxy wrap` as people see it: the real program in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.cli.wrap import build_parser, main
from hookproxy.model.errors import UserError
from tests.support import preloaded_program, terminal

pytestmark = pytest.mark.slow

HOOKPROXY: Final = str(Path(sys.executable).with_name("hookproxy"))
CODEX: Final = '# mine\n[mcp_servers.git]\ncommand = "npx" # why\nargs = ["git"]\n'
ERRORS: Final = [
    (["no.json"], "no.json: there is no such file"),
    (["."], "is a folder, not a file"),
    (["x.json", "--server", "gti"], "there is no server 'gti' in it\nhint: did you mean 'git'?"),
    (["x.json", "--config", "no.toml"], "no.toml: there is no such file"),
    (["x.json", "--hooks", "no.json"], "there is no such file"),
    (["x.json", "more"], "unrecognized arguments: more"),
    (["--dry-run"], f"no agent and no file is named\nhint: usage: {build_parser().usage}"),
    (["--config", "x"], "no agent and no file is named"),
    (["--fail-closed"], "no agent and no file is named"),
    (["x.json", "--all"], "both --all and 'x.json' are given"),
    (["cursr"], "cursr: there is no such file\nhint: did you mean 'cursor'?"),
    (["--all"], "no agent configuration with servers was found"),
    (["cursor"], "Cursor has no configuration here: none of these files exists: ~/.cursor/mcp.json, "),
]


def run(folder: Path, verb: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return preloaded_program.run([verb, *arguments], folder, os.environ | variables)


def configuration(*names: str, **more: object) -> str:
    servers = {name: {"command": "npx", "args": [name]} for name in names}
    return json.dumps({"mcpServers": servers | more}, indent=2) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.json").write_text(configuration("git", "time"))
    (tmp_path / "hooks.toml").write_text('[[hooks.PreToolUse]]\ncommand = "true"\n')
    return tmp_path


def servers(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())["mcpServers"]
    return found


def test_it_shows_a_diff_and_writes_what_an_agent_can_start_from_anywhere(folder: Path) -> None:
    before = (folder / "x.json").read_text()
    done = run(folder, "wrap", "x.json", "--server", "git", "--config", "hooks.toml", "--hooks", "./h")
    assert (done.returncode, done.stdout) == (2, "")
    assert (folder / "x.json").read_text() == before
    done = run(folder, "wrap", "x.json", "--server", "git", "--config", "hooks.toml")
    assert done.returncode == 0
    assert done.stdout.startswith("--- x.json\n+++ x.json\n@@ ")
    assert '-      "command": "npx",\n' in done.stdout
    assert done.stderr.startswith(
        f"x.json: written with its path, {HOOKPROXY}: an agent may have another PATH\n"
        "x.json: wrapped: mcpServers.git; backup: "
    )
    assert servers(folder / "x.json") == {
        "git": {
            "command": HOOKPROXY,
            "args": ["run", "--name", "git", "--config", str(folder / "hooks.toml"), "--", "npx", "git"],
        },
        "time": {"command": "npx", "args": ["time"]},
    }
    assert (folder / "x.json.hookproxy-backup").read_text() == before


def test_a_second_time_there_is_nothing_to_do(folder: Path) -> None:
    run(folder, "wrap", "x.json", "--config", "hooks.toml")
    text = (folder / "x.json").read_text()
    inode = (folder / "x.json").stat().st_ino
    done = run(folder, "wrap", "x.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert "mcpServers.git is already wrapped: " in done.stderr
    assert f"run --name git --config {folder}/hooks.toml\n" in done.stderr
    assert done.stderr.endswith("x.json: nothing to do\n")
    assert (folder / "x.json").read_text() == text
    assert (folder / "x.json").stat().st_ino == inode


def test_a_link_is_followed_and_reported(folder: Path) -> None:
    (folder / "sub").mkdir()
    link = folder / "sub" / "link.json"
    link.symlink_to("../x.json")
    done = run(folder, "wrap", "sub/link.json")
    assert f"sub/link.json is a link to {folder}/x.json\n" in done.stderr
    assert link.is_symlink()
    assert servers(folder / "x.json")["git"]["command"] == HOOKPROXY
    assert os.listdir(folder / "sub") == ["link.json"]


def test_a_dry_run_writes_nothing(folder: Path) -> None:
    before = (folder / "x.json").read_text()
    done = run(folder, "wrap", "x.json", "--dry-run")
    assert done.returncode == 0
    assert '+      "command"' in done.stdout
    assert "nothing was written" in done.stderr
    assert (folder / "x.json").read_text() == before
    assert sorted(os.listdir(folder)) == ["hooks.toml", "x.json"]


def test_hook_files_are_made_absolute_and_keep_their_dialect(folder: Path) -> None:
    hooks = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (folder / "h.json").write_text(json.dumps(hooks))
    assert run(folder, "wrap", "x.json", "--hooks", "claude=h.json", "--hooks", "./h.json").returncode == 0
    args = servers(folder / "x.json")["git"]["args"]
    assert args[3:7] == ["--hooks", f"claude={folder}/h.json", "--hooks", f"{folder}/h.json"]


def test_a_note_says_that_no_hook_is_configured(folder: Path) -> None:
    assert "no hook is configured yet" in run(folder, "wrap", "x.json", "--dry-run").stderr
    assert "no hook" not in run(folder, "wrap", "x.json", "--dry-run", "--config", "hooks.toml").stderr


def test_a_note_says_that_a_named_file_guards_nothing(folder: Path) -> None:
    (folder / "h.json").write_text('{"hooks": {}}')
    options = ("wrap", "x.json", "--dry-run", "--config", "hooks.toml", "--hooks", "claude=h.json")
    assert "h.json: none of its hooks can run here" in run(folder, *options).stderr


def test_a_note_says_that_hooks_let_a_call_pass_if_they_fail(folder: Path) -> None:
    """Standard error of the run itself is the agent's: most people never see it."""
    hooks = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (folder / "h.json").write_text(json.dumps(hooks))
    options = ("wrap", "x.json", "--dry-run", "--hooks", "claude=h.json")
    assert "1 of 1 hook lets a call pass if it fails: --fail-closed refuses such calls" in run(folder, *options).stderr
    assert "lets a call pass" not in run(folder, *options, "--fail-closed").stderr


def test_mcp_remote_is_replaced_only_with_the_option_that_a_note_names(folder: Path) -> None:
    file = folder / "x.json"
    file.write_text(before := configuration("git", far={"command": "npx", "args": ["-y", "mcp-remote", "https://x"]}))
    done = run(folder, "wrap", "x.json")
    assert (
        "mcpServers.far starts mcp-remote: with --replace-mcp-remote, hookproxy connects to the address" in done.stderr
    )
    assert servers(file)["far"]["args"][-3:] == ["-y", "mcp-remote", "https://x"]
    assert run(folder, "unwrap", "x.json").returncode == 0
    done = run(folder, "wrap", "x.json", "--replace-mcp-remote")
    assert "starts mcp-remote" not in done.stderr
    assert servers(file)["far"]["args"] == ["run", "--name", "far", "--url", "https://x"]
    assert run(folder, "unwrap", "x.json").returncode == 0
    assert file.read_text() == before


def test_unwrap_says_why_an_entry_at_an_address_stays_wrapped(folder: Path) -> None:
    file = folder / "x.json"
    file.write_text(before := configuration("git", far={"command": "hookproxy", "args": ["run", "--url", "https://x"]}))
    done = run(folder, "unwrap", "x.json")
    assert done.returncode == 0
    assert "mcpServers.far is not changed: it was written by hand, or its variable HOOKPROXY_ENTRY" in done.stderr
    assert file.read_text() == before


def test_remote_servers_that_cannot_be_wrapped_are_not_changed_and_a_note_says_why(folder: Path) -> None:
    far, both = {"url": "https://x", "headersHelper": "token.sh"}, {"url": "https://y", "command": "z"}
    (folder / "x.json").write_text(configuration("git", far=far, both=both))
    done = run(folder, "wrap", "x.json")
    assert done.returncode == 0
    assert "mcpServers.far is not changed: it has 'headersHelper', by which the agent itself connects" in done.stderr
    assert "mcpServers.both also has an address" in done.stderr
    assert servers(folder / "x.json")["far"] == far


def test_the_module_is_started_if_there_is_no_script(folder: Path) -> None:
    command = [sys.executable, "-m", "hookproxy", "wrap", "x.json"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    (folder / "hookproxy").mkdir()  # the agent's working directory is not what was installed
    (folder / "hookproxy" / "__main__.py").write_text("raise SystemExit(99)")
    git = servers(folder / "x.json")["git"]
    assert [git["command"], *git["args"][:4]] == [sys.executable, "-P", "-m", "hookproxy", "run"]
    end = git["args"].index("--") + 1
    started = subprocess.run(
        [git["command"], *git["args"][:end], "true"], cwd=folder, stdin=subprocess.PIPE, timeout=60
    )
    assert started.returncode == 0


def test_variables_for_a_server_in_python_do_not_reach_our_own(folder: Path) -> None:
    (folder / "anyio.py").write_text("raise SystemExit(99)")
    script = "import sys; sys.exit(7 if sys.path.count(sys.argv[1]) else 8)"
    server = {"command": sys.executable, "args": ["-c", script, str(folder)], "env": {"PYTHONPATH": str(folder)}}
    (folder / "x.json").write_text(json.dumps({"mcpServers": {"a": server}}))
    assert run(folder, "wrap", "x.json").returncode == 0
    entry = servers(folder / "x.json")["a"]
    assert [entry["command"], *entry["args"][:4]] == [sys.executable, "-E", "-P", "-m", "hookproxy"]
    argv = [entry["command"], *entry["args"]]
    started = subprocess.run(argv, env=os.environ | entry["env"], cwd="/", stdin=subprocess.PIPE, timeout=60)
    assert started.returncode == 7
    run(folder, "unwrap", "x.json")
    assert (folder / "x.json").read_text() == json.dumps({"mcpServers": {"a": server}})


def test_the_users_own_configuration_is_named_since_an_agent_may_start_servers_elsewhere(
    folder: Path, home: Path
) -> None:
    own = home / ".config" / "hookproxy" / "hookproxy.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[[hooks.PreToolUse]]\ncommand = "true"\n')
    done = run(folder, "wrap", "x.json")
    assert "no hook" not in done.stderr
    assert servers(folder / "x.json")["git"]["args"][3:5] == ["--config", str(own)]


@pytest.mark.parametrize(("arguments", "what"), ERRORS)
def test_errors_say_what_and_where(folder: Path, arguments: list[str], what: str) -> None:
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    done = run(folder, "wrap", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert what in done.stderr
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before


def test_arguments_are_checked_before_anything_else() -> None:
    with pytest.raises(UserError, match="expected one argument"):
        main(["x.json", "--server"])


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return terminal.shown([HOOKPROXY, *arguments], folder, env | variables, 80)


def test_colours_are_for_terminals_and_nothing_in_a_file_reaches_one_raw(folder: Path) -> None:
    (folder / "x.json").write_text('{"mcpServers": {"\u202eevil\x9b31m": {"command": "a\u202eb"}}}')
    shown = on_a_terminal(folder, "wrap", "x.json", "--dry-run")
    assert "\x1b[31m-{" in shown
    assert "\u202e" not in shown
    assert "\x9b" not in shown
    assert "\\u202eevil\\x9b31m" in shown
    plain = on_a_terminal(folder, "wrap", "x.json", "--dry-run", NO_COLOR="1")
    assert "\x1b[3" not in plain
    assert "\n-{" in plain


def test_output_in_ascii_has_escaped_characters(folder: Path) -> None:
    (folder / "x.json").write_text('{"mcpServers": {"ключ": {"command": "x"}}}', "utf-8")
    done = run(folder, "wrap", "x.json", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\\u043a" in done.stdout


# --- without a file ---


def test_it_lists_configurations_and_which_servers_are_wrapped(folder: Path, home: Path) -> None:
    (folder / ".mcp.json").write_text(
        configuration("git", far={"url": "https://x"}, off={"command": "x", "disabled": True})
    )
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CODEX)
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text('{"theme": "dark"}')
    assert run(folder, "wrap", str(home / ".codex" / "config.toml")).returncode == 0
    done = run(folder, "wrap")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{folder}/.mcp.json  Claude Code, Copilot CLI\n"
        "  mcpServers.git  not wrapped\n  mcpServers.far  not wrapped\n  mcpServers.off  not wrapped, disabled\n\n"
        f"{home}/.codex/config.toml  Codex\n"
        f"  mcp_servers.git  wrapped: {HOOKPROXY} run --name git\n\n"
    )


def test_a_note_says_that_there_is_no_configuration(folder: Path) -> None:
    done = run(folder, "wrap")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "no agent configuration with servers was found\n"


def test_a_configuration_that_cannot_be_read_is_reported_and_the_others_are_listed(folder: Path, home: Path) -> None:
    (home / ".claude.json").write_text('{"mcpServers": {}, "mcpServers": {}}')
    os.mkfifo(folder / "opencode.json")
    (folder / ".mcp.json").write_text(configuration("git"))
    done = run(folder, "wrap")
    assert done.returncode == 1
    assert "mcpServers.git" in done.stdout
    assert ".claude.json:1: the key 'mcpServers' appears twice" in done.stderr
    assert "opencode.json: is not a regular file" in done.stderr


def test_findings_of_check_are_reported_and_strict_stops(folder: Path) -> None:
    hooks = "".join(f'[[hooks.PreToolUse]]\ncommand = "./gone{number}"\n' for number in range(7))
    (folder / "hooks.toml").write_text(hooks)
    done = run(folder, "wrap", "x.json", "--config", "hooks.toml", "--dry-run")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert lines[0] == f"{folder}/hooks.toml:1: hooks.PreToolUse[0]: there is no file {folder}/gone0"
    assert lines[5] == "and 2 more: hookproxy check shows all"
    (folder / "hooks.toml").write_text("strict = true\n" + hooks)
    done = run(folder, "wrap", "x.json", "--config", "hooks.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: strict: ")


def test_entries_reach_a_gateway_and_come_back(folder: Path) -> None:
    before = (folder / "x.json").read_text()
    done = run(folder, "wrap", "x.json", "--gateway")
    assert done.returncode == 0, done.stderr
    assert {name: entry["args"] for name, entry in servers(folder / "x.json").items()} == {
        "git": ["connect", "git"],
        "time": ["connect", "time"],
    }
    again = run(folder, "wrap", "x.json", "--gateway")
    assert again.stderr.endswith("x.json: nothing to do\n")
    assert f"mcpServers.git is already wrapped: {HOOKPROXY} connect git\n" in again.stderr
    other = run(folder, "wrap", "x.json")
    assert "reaches the gateway, which judges its calls: unwrap it first" in other.stderr
    assert run(folder, "unwrap", "x.json").returncode == 0
    assert (folder / "x.json").read_text() == before


def test_an_agent_that_speaks_http_reaches_a_gateway_itself_and_its_entries_come_back(folder: Path) -> None:
    home = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
    (folder / ".cursor").mkdir()
    file, before = folder / ".cursor/mcp.json", configuration("git", "time", far={"url": "https://x.example/mcp"})
    file.write_text(before)
    done = run(folder, "wrap", "cursor", "--gateway", "https://far.example:8443/", **home)
    assert done.returncode == 0, done.stderr
    assert "the agent needs your token of the gateway in its environment, as HOOKPROXY_TOKEN" in done.stderr
    for name, entry in servers(file).items():
        headers = {"Authorization": "Bearer ${env:HOOKPROXY_TOKEN}"}
        assert entry == {"url": f"https://far.example:8443/mcp/{name}", "headers": headers}
    assert (folder / "state/hookproxy/written.json").stat().st_mode & 0o777 == 0o600
    again = run(folder, "wrap", "cursor", "--gateway", "https://far.example:8443", **home)
    assert "mcpServers.git is already wrapped: https://far.example:8443/mcp/git" in again.stderr
    assert "reaches a gateway: https://far.example:8443/mcp/git" in run(folder, "wrap", **home).stdout
    assert "hookproxy unwrap" in run(folder, "unwrap", **home).stdout
    assert run(folder, "unwrap", "cursor", "--server", "git", **home).returncode == 0
    assert servers(file)["git"] == {"command": "npx", "args": ["git"]}
    assert run(folder, "uninstall", "--yes", **home).returncode == 0
    assert file.read_text() == before
    assert not (folder / "state/hookproxy/written.json").exists()


def test_nothing_is_changed_that_could_not_be_restored(folder: Path) -> None:
    (folder / ".cursor").mkdir()
    file = folder / ".cursor/mcp.json"
    file.write_text(configuration("git"))
    (folder / "state").write_text("not a folder")
    state = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
    done = run(folder, "wrap", "cursor", "--gateway", "https://far.example", **state)
    assert done.returncode == 2
    assert file.read_text() == configuration("git")
    done = run(folder, "wrap", "cursor", "--gateway", "https://far.example", "--stdio", **state)
    assert servers(file)["git"]["args"] == ["connect", "git", "--url", "https://far.example"]


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("/run/x.sock", ["--socket", "/run/x.sock"]),
        ("unix:/run/x.sock", ["--socket", "/run/x.sock"]),
        ("https://far.example:8443", ["--url", "https://far.example:8443"]),
        ("http://127.0.0.1:8765", ["--url", "http://127.0.0.1:8765"]),
    ],
)
def test_a_gateway_elsewhere_is_named(folder: Path, where: str, arguments: list[str]) -> None:
    assert run(folder, "wrap", "x.json", "--gateway", where, "--server", "git").returncode == 0
    assert servers(folder / "x.json")["git"]["args"] == ["connect", "git", *arguments]
    assert servers(folder / "x.json")["time"]["args"] == ["time"]


def test_a_server_that_runs_as_its_user_keeps_its_command(folder: Path) -> None:
    before = (folder / "x.json").read_text()
    assert run(folder, "wrap", "x.json", "--gateway", "--from-caller").returncode == 0
    socket = ["--socket", "/run/hookproxy/mcp.sock"]
    assert servers(folder / "x.json")["git"]["args"] == ["connect", "git", *socket, "--", "npx", "git"]
    assert run(folder, "unwrap", "x.json").returncode == 0
    assert (folder / "x.json").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--gateway", "--hooks", "x.json"], "its own configuration says which hooks run"),
        (["--gateway", "mcp.sock"], "neither the full path of a socket nor a URL"),
        (["--gateway", "./mcp.sock"], "begin the path with /"),
        (["--gateway", "http://far.example"], "would send everything unencrypted"),
        (["--gateway", "ftp://far.example"], "--gateway"),
        (["--gateway", "https://far.example/?a=b"], "is not the address of a gateway"),
        (["--gateway", "https://far.example#x"], "is not the address of a gateway"),
        (["--gateway", "https://far.example", "--from-caller"], "--from-caller needs the gateway's socket"),
        (["--from-caller"], "--from-caller is for --gateway"),
        (["--stdio"], "--stdio is for --gateway URL"),
        (["--stdio", "--gateway"], "--stdio is for --gateway URL"),
    ],
)
def test_a_gateway_that_cannot_be_reached_so_is_an_error(folder: Path, arguments: list[str], what: str) -> None:
    before = (folder / "x.json").read_bytes()
    done = run(folder, "wrap", "x.json", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert what in done.stderr
    assert (folder / "x.json").read_bytes() == before


def test_a_name_that_no_gateway_has_is_left_and_named(folder: Path) -> None:
    (folder / "x.json").write_text(configuration("git", "two words"))
    done = run(folder, "wrap", "x.json", "--gateway")
    assert "mcpServers.two words is not changed: it has a name that no server of a gateway can have" in done.stderr
    assert servers(folder / "x.json")["two words"] == {"command": "npx", "args": ["two words"]}


def test_fail_closed_is_written_once_kept_and_undone(folder: Path) -> None:
    before = (folder / "x.json").read_text()
    (folder / "claude.json").write_text('{"hooks": {}}')
    words = ("wrap", "x.json", "--server", "git", "--hooks", "claude=claude.json")
    assert run(folder, *words, "--fail-closed").returncode == 0
    expected = ["run", "--name", "git", "--hooks", f"claude={folder}/claude.json", "--fail-closed", "--", "npx", "git"]
    assert servers(folder / "x.json")["git"]["args"] == expected
    assert "nothing to do" in run(folder, *words, "--fail-closed").stderr
    assert run(folder, *words, "--project", ".").returncode == 0
    assert servers(folder / "x.json")["git"]["args"][5:8] == ["--fail-closed", "--project", str(folder)]
    assert run(folder, "unwrap", "x.json").returncode == 0
    assert (folder / "x.json").read_text() == before


def test_a_gateway_decides_itself_what_failing_hooks_mean(folder: Path) -> None:
    done = run(folder, "wrap", "x.json", "--gateway", "--fail-closed")
    assert done.returncode == 2
    assert "hint: leave out --config, --hooks, --project, --fail-closed and --replace-mcp-remote" in done.stderr
