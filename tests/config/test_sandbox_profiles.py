"""What profiles of recognised servers open: what their command line names, and nothing that a table may not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.gateway import GatewayConfig, load_gateway
from hookproxy.config.sandbox_profiles import Launch, Profiled, own_value, profiled
from hookproxy.gateway.server_process import notes
from hookproxy.policy.presets import PRESETS
from hookproxy.sandbox.table import Sandbox

FILES = "@modelcontextprotocol/server-filesystem"


def opened(command: tuple[str, ...], cwd: Path, refused: tuple[str, ...] = (), **env: str) -> Profiled:
    launch = Launch(command, str(cwd), str(cwd / "home"), env)
    found = profiled(launch, Sandbox(), lambda path, _writes: "is refused" if path in refused else "")
    assert found is not None
    return found


def load(folder: Path, text: str) -> GatewayConfig:
    (folder / "etc").mkdir(mode=0o755, exist_ok=True)
    (folder / "etc" / "gateway.toml").write_text(text)
    return load_gateway("gateway.toml", {"HOME": str(folder / "home")}, str(folder / "etc"))


def test_a_server_of_files_may_write_the_folders_that_its_own_arguments_name(tmp_path: Path) -> None:
    for name in ("a", "b", "prefix"):
        (tmp_path / name).mkdir()
    command = ("npx", "--prefix", str(tmp_path / "prefix"), "-y", FILES, str(tmp_path / "a"), "./b", "missing")
    found = opened(command, tmp_path)
    assert (found.name, found.sandbox.write) == ("filesystem", (str(tmp_path / "a"), str(tmp_path / "b")))
    assert found.sandbox.read == ()


def test_links_are_followed_before_anything_is_compared(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    found = opened(("mcp-server-filesystem", str(tmp_path / "link")), tmp_path, (str(tmp_path / "real"),))
    assert (found.sandbox.write, found.left_out) == ((), (f"{tmp_path}/real: it is refused",))


@pytest.mark.parametrize("words", [("--db-path", "data/x.db"), ("--db-path=data/x.db",)])
def test_a_database_needs_the_folder_of_its_file_even_before_the_file_is_there(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    assert opened(("uvx", "mcp-server-sqlite", *words), tmp_path).sandbox.write == (str(tmp_path / "data"),)


def test_the_memory_server_keeps_its_file_in_its_own_folder_unless_its_table_names_one(tmp_path: Path) -> None:
    own = opened(("mcp-server-memory",), tmp_path)
    assert own.sandbox.write == ()
    assert own_value(own.sandbox.variables["MEMORY_FILE_PATH"], "/state/x") == "/state/x/memory.jsonl"
    named = opened(("mcp-server-memory",), tmp_path, MEMORY_FILE_PATH=str(tmp_path / "graph" / "m.jsonl"))
    assert (named.sandbox.write, named.sandbox.variables) == ((str(tmp_path / "graph"),), {})


def test_a_browser_is_read_and_named_where_it_is_installed(tmp_path: Path) -> None:
    browsers = tmp_path / "home" / ".cache" / "ms-playwright"
    assert opened(("playwright-mcp",), tmp_path).sandbox.variables == {}
    browsers.mkdir(parents=True)
    found = opened(("playwright-mcp",), tmp_path)
    assert str(browsers) in found.sandbox.read
    assert found.sandbox.variables == {"PLAYWRIGHT_BROWSERS_PATH": str(browsers)}
    assert opened(("playwright-mcp",), tmp_path, (str(browsers),)).sandbox.variables == {}


@pytest.mark.parametrize("command", [(), ("true",), ("uvx", "mcp-server-fetch"), ("sh", "-c", "echo")])
def test_a_server_without_a_profile_has_the_default(command: tuple[str, ...], tmp_path: Path) -> None:
    assert profiled(Launch(command, str(tmp_path), "/home/a"), Sandbox(), lambda _path, _writes: "") is None


def test_a_table_in_the_configuration_is_all_that_holds_and_an_empty_one_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    server = f'[servers.files]\ncommand = ["npx", "{FILES}", "{tmp_path}/data"]\n'
    config = load(tmp_path, server)
    assert config.servers["files"].sandbox == Sandbox(write=(f"{tmp_path}/data",))
    assert [note for note in notes(config) if "has the profile filesystem: it writes" in note]
    for table in ('sandbox.network = "none"\n', "[servers.files.sandbox]\n", 'sandbox = "off"\n'):
        config = load(tmp_path, server + table)
        assert config.servers["files"].profile is None
        assert not [note for note in notes(config) if "profile" in note]
        sandbox = config.servers["files"].sandbox
        assert sandbox is None or sandbox.write == ()


def test_a_profile_opens_nothing_of_the_gateway_and_says_so(tmp_path: Path) -> None:
    config = load(tmp_path, f'[servers.files]\ncommand = ["npx", "{FILES}", "{tmp_path}", "/", "/etc", "/proc"]\n')
    server = config.servers["files"]
    assert server.sandbox == Sandbox()
    assert len([note for note in notes(config) if "does not open" in note]) == 4


def test_where_a_profile_writes_counts_as_a_folder_that_servers_write(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    config = load(tmp_path, f'[servers.files]\ncommand = ["npx", "{FILES}", "{tmp_path}/data"]\n')
    assert f"{tmp_path}/data" in config.servers["files"].surroundings.writable


def test_profiles_name_what_they_may_name() -> None:
    faults = []
    for name, preset in PRESETS.items():
        profile = preset.sandbox
        if profile is None:
            continue
        faults += [f"{name}: {path}" for path in profile.read if not path.startswith(("/", "~/"))]
        faults += [f"{name}: {key}" for key, value in profile.env.items() if not value.startswith(("~/", "HOME/"))]
        faults += [f"{name}: {option}" for option in profile.options if not option.startswith("-")]
    assert faults == []
