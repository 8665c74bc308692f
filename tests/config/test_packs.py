"""Packs in a configuration: they count, they only narrow, and the administrator's files stand above them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hookproxy.cli import trust
from hookproxy.cli.main import main
from hookproxy.config.load import Loaded, load
from hookproxy.config.load import load_by as load_with
from hookproxy.model.errors import ConfigError
from hookproxy.packs.manifest import verify
from hookproxy.packs.store import Store
from hookproxy.signing.keys import PrivateKey
from hookproxy.trust.sources import FileContext
from tests.support.managed_folder import ROOT_ONLY, write
from tests.support.packs import in_folder, pack
from tests.support.signed_policy import new_key

KEY = new_key()


def installed(
    home: Path, *, key: PrivateKey | None = None, name: str = "quiet", files: Mapping[str, str] | None = None
) -> None:
    of_pack = pack(key=key, name=name, files=files)
    one, store = verify(of_pack, None), Store(str(home / ".local/share/hookproxy/packs"))
    with store.locked(name):
        store.write_files(one)
        store.make_current(one, "/from", "")


def loaded(folder: Path, text: str) -> Loaded:
    (folder / "hookproxy.toml").write_text(text)
    return load("hookproxy.toml", [], None, {"HOME": str(folder), "PATH": "/bin:/usr/bin"}, str(folder))


def test_a_packs_hooks_run_before_those_of_the_file_and_its_rules_add_up(tmp_path: Path) -> None:
    installed(tmp_path)
    own = '[[hooks.PreToolUse]]\ncommand = "true"\n\n[permissions]\ndeny = ["mine"]\nallow = ["send_mail"]\n'
    result = loaded(tmp_path, f'{own}\n[packs]\nuse = ["quiet"]\n')
    assert [group.hooks[0].label for group in result.groups] == ["quiet", "true"]
    assert (result.settings.deny, result.settings.allow) == (("mine",), ("send_mail",))
    assert [of_pack.deny for of_pack in result.settings.pack_rules] == [("send_*",)]
    assert not result.groups[0].managed


def test_packs_count_in_their_order(tmp_path: Path) -> None:
    installed(tmp_path)
    installed(tmp_path, name="other", files={"hookproxy.toml": '[permissions]\nask = ["x"]\ndeny = ["other"]\n'})
    result = loaded(tmp_path, '[packs]\nuse = ["other", "quiet"]\n')
    assert [of_pack.deny for of_pack in result.settings.pack_rules] == [("other",), ("send_*",)]
    assert [of_pack.ask for of_pack in result.settings.pack_rules] == [("x",), ()]


def test_the_rules_of_a_pack_with_a_default_are_a_layer_of_their_own(tmp_path: Path) -> None:
    installed(tmp_path)
    only = '[permissions]\ndefault = "deny"\nallow = ["read_*"]\ndeny = ["read_key"]\nask = ["read_mail"]\n'
    installed(tmp_path, name="only", files={"hookproxy.toml": only})
    installed(tmp_path, name="asking", files={"hookproxy.toml": '[permissions]\ndefault = "ask"\n'})
    own = '[permissions]\nallow = ["*"]\ndeny = ["mine"]\n'
    settings = loaded(tmp_path, f'{own}\n[packs]\nuse = ["only", "quiet", "asking"]\n').settings
    assert (settings.deny, settings.ask, settings.allow) == (("mine",), (), ("*",))
    assert settings.default_permission == "allow"
    of_only, of_quiet, of_asking = settings.pack_rules
    assert of_quiet.deny == ("send_*",)
    assert (of_only.deny, of_only.ask, of_only.allow) == (("read_key",), ("read_mail",), ("read_*",))
    assert (of_only.default_permission, of_only.called) == ("deny", "the pack only")
    assert (of_asking.default_permission, of_asking.called) == ("ask", "the pack asking")
    assert of_only.rule_places["default"].endswith("hookproxy.toml:2: permissions.default")


ONLY_READS = '[permissions]\ndefault = "deny"\nallow = ["read_*", "mcp__s__list"]\n'


def test_an_allow_list_of_a_pack_leaves_what_the_rest_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    installed(tmp_path, files={"hookproxy.toml": ONLY_READS})
    (tmp_path / "hookproxy.toml").write_text(
        '[permissions]\ndefault = "deny"\nallow = ["read_a", "write"]\n[packs]\nuse = ["quiet"]\n'
    )
    answers = {}
    for tool in ("read_a", "read_b", "write"):
        main(["try", tool, "{}", "--config", "hookproxy.toml"])
        answers[tool] = capsys.readouterr().out
    assert "read_a of server: allowed" in answers["read_a"]
    assert "refused" in answers["read_b"], "only the pack's list has it"
    assert "refused" in answers["write"], "only the user's list has it"
    assert "the pack quiet" in answers["write"]
    assert main(["check", "--config", "hookproxy.toml"]) == 0
    output = capsys.readouterr().out
    assert "permission rules of the pack quiet" in output
    assert "4 permission rules" in output


def test_a_hook_of_a_pack_calls_no_tool_past_rules(tmp_path: Path) -> None:
    file = '{"hooks": {"PreToolUse": [{"hooks": [{"type": "mcp_tool", "server": "s", "tool": "drop"}]}]}}'
    installed(tmp_path, files={"hookproxy.toml": '[[use]]\nfile = "x.json"\n', "x.json": file})
    with pytest.raises(ConfigError, match="calls the tool drop, and no rule"):
        loaded(tmp_path, '[permissions]\ndeny = ["drop"]\n[packs]\nuse = ["quiet"]\n')


def test_a_pack_that_is_not_installed_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no pack quiet") as raised:
        loaded(tmp_path, '[packs]\nuse = ["quiet"]\n')
    assert "hookproxy init --from PACK --install" in raised.value.hint


_CEDAR = '[[hooks.PreToolUse]]\ntype = "cedar"\n'


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('[permissions]\nallow = ["*"]\n', r"permissions\.allow: allows nothing by itself"),
        ('[permissions]\ndefault = "allow"\nallow = ["*"]\n', r"permissions\.allow: allows nothing by itself"),
        ('[permissions]\nmode = "monitor"\n', r"permissions\.mode: is not for a pack"),
        ("[permissions]\nhide_denied = false\n", r"permissions\.hide_denied: is not for a pack"),
        ("[audit]\nenabled = false\n", "audit: is not for a pack"),
        ('on_failure = "allow"\n', "on_failure: is not for a pack"),
        ('on_ask = "allow"\n', "on_ask: is not for a pack"),
        ('[tools.execute]\nas = "Read"\n', "tools: is not for a pack"),
        ('aliases = "off"\n', "aliases: is not for a pack"),
        ("managed_only = true\n", "managed_only: is not for a pack"),
        ("require_trust = false\n", "require_trust: is not for a pack"),
        ('[packs]\nuse = ["other"]\n', "packs: is not for a pack"),
        ('[policy]\nsource = "https://x.example/x"\nkeys = ["x"]\n', "policy: is not for a pack"),
        ('[hooks]\nnotifications = "pass"\n', r"hooks\.notifications: is not for a pack"),
        ('[[use]]\nfile = "../../../../../.claude/settings.json"\n', r"use\[0\]\.file: .* is not in the pack"),
        (_CEDAR + 'file = "/etc/x.cedar"\n', r"hooks.PreToolUse\[0\]\.file: .* is not in the pack"),
        (_CEDAR + 'file = "x.cedar"\nschema = "../x"\n', r"hooks.PreToolUse\[0\]\.schema: .* is not in the pack"),
        ('[[use]]\nfile = "/etc/hooks.json"\n', r"use\[0\]\.file: .* is not in the pack"),
        ('[[use]]\nfile = "~/hooks.json"\n', r"use\[0\]\.file: .* is not in the pack"),
        ('[[use]]\nfile = "x.json"\nproject = "/"\n', r"use\[0\]\.project: / is not in the pack"),
        ('[[use]]\nfile = "x.json"\npermissions = true\n', r"use\[0\]\.permissions: is not for a pack"),
        ('[[use]]\nfile = "x.json"\nsecrets = "values"\n', r'use\[0\]\.secrets: "values" is not for a pack'),
        (f'{_CEDAR}secrets = "values"\n', r'hooks.PreToolUse\[0\]\.secrets: "values" is not for a pack'),
        ("nonsense = 1\n", "nonsense: unknown key"),
        (
            '[hooks.composition]\nresolver = {argv = ["true"]}\n'
            '[[hooks.PreToolUse]]\ntype = "agent-hooks"\nargv = ["true"]\n',
            "answers in the place of a person",
        ),
    ],
)
def test_a_pack_says_nothing_that_could_allow_anything(tmp_path: Path, config: str, says: str) -> None:
    installed(tmp_path, files={"hookproxy.toml": config})
    with pytest.raises(ConfigError, match=says) as raised:
        loaded(tmp_path, '[packs]\nuse = ["quiet"]\n')
    assert raised.value.hint


@pytest.mark.parametrize("is_signed", [False, True])
def test_with_keys_a_pack_that_none_of_them_has_signed_stops_the_start(tmp_path: Path, is_signed: bool) -> None:
    installed(tmp_path, key=new_key() if is_signed else None)
    own = tmp_path / ".config/hookproxy/hookproxy.toml"
    write(own, f'[packs]\nuse = ["quiet"]\nkeys = ["{KEY.public.line}"]\n')
    environ = {"HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"not signed"):
        load(None, [], None, environ, str(tmp_path))
    with pytest.raises(ConfigError, match=r"not signed"):  # keys of the user's own file count with --config, too
        loaded(tmp_path, '[packs]\nuse = ["quiet"]\n')


def test_with_keys_a_pack_that_one_of_them_has_signed_counts(tmp_path: Path) -> None:
    installed(tmp_path, key=KEY)
    (tmp_path / "keys.pub").write_text(f"# who counts\n{KEY.public.line}\n")
    write(tmp_path / ".config/hookproxy/hookproxy.toml", '[packs]\nuse = ["quiet"]\nkeys = ["../../keys.pub"]\n')
    assert load(None, [], None, {"HOME": str(tmp_path)}, str(tmp_path)).groups


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[packs]\nkeys = ["ssh-ed25519 AAAA"]\n', r"packs\.keys\[0\]: is cut off"),
        ('[packs]\nkeys = ["KEY"]\n', "its keys would not count here"),
        ("[packs]\nkeys = []\n", "keys"),
        ('[packs]\nuse = ["../x"]\n', "use"),
        ('[packs]\nuse = ["x", "x"]\n', "names x twice"),
    ],
)
def test_keys_and_names_that_cannot_count_are_errors(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        loaded(tmp_path, text.replace("KEY", KEY.public.line))
    assert raised.value.hint


@ROOT_ONLY
def test_a_pack_only_narrows_what_managed_policy_allows(tmp_path: Path, etc: Path) -> None:
    installed(
        tmp_path, files={"hookproxy.toml": '[permissions]\nask = ["write"]\n\n[[hooks.PreToolUse]]\ncommand = "true"\n'}
    )
    write(etc / "managed.toml", '[permissions]\ndeny = ["write"]\n\n[[hooks.PreToolUse]]\ncommand = "/bin/true"\n')
    result = loaded(tmp_path, '[packs]\nuse = ["quiet"]\n')
    assert [group.managed for group in result.groups] == [False, True], "the administrator's hooks run last"
    assert result.settings.managed is not None
    assert (result.settings.managed.deny, result.settings.managed.ask) == (("write",), ())
    installed(
        tmp_path, name="inside", files={"hookproxy.toml": '[[hooks.PreToolUse]]\ntype = "python"\ncall = "x:y"\n'}
    )
    with pytest.raises(ConfigError, match="could turn off what is managed"):
        loaded(tmp_path, '[packs]\nuse = ["inside"]\n')
    write(etc / "managed.toml", "managed_only = true\n")
    assert not loaded(tmp_path, '[packs]\nuse = ["quiet"]\n').groups


@ROOT_ONLY
def test_the_administrators_keys_stand_before_the_users(tmp_path: Path, etc: Path) -> None:
    installed(tmp_path, key=KEY)
    write(tmp_path / ".config/hookproxy/hookproxy.toml", f'[packs]\nuse = ["quiet"]\nkeys = ["{KEY.public.line}"]\n')
    write(etc / "managed.toml", f'[packs]\nkeys = ["{new_key().public.line}"]\n')
    with pytest.raises(ConfigError, match="is not signed by one of the keys"):
        load(None, [], None, {"HOME": str(tmp_path)}, str(tmp_path))
    write(etc / "managed.toml", f'[packs]\nkeys = ["{KEY.public.line}"]\n')
    assert load(None, [], None, {"HOME": str(tmp_path)}, str(tmp_path)).groups
    write(etc / "managed.toml", '[packs]\nuse = ["quiet"]\n')
    with pytest.raises(ConfigError, match="is for the files of users"):
        load(None, [], None, {"HOME": str(tmp_path)}, str(tmp_path))


def test_a_version_is_tried_in_place_of_the_installed_one(tmp_path: Path) -> None:
    installed(tmp_path)
    folder = in_folder(tmp_path / "new", pack(files={"hookproxy.toml": '[permissions]\ndeny = ["new"]\n'}))
    files = FileContext({"HOME": str(tmp_path)}, str(tmp_path), pack_folders={"quiet": (str(folder), "")})
    (tmp_path / "hookproxy.toml").write_text('[packs]\nuse = ["quiet"]\n')
    assert load_with(files, "hookproxy.toml").settings.pack_rules[0].deny == ("new",)
    (tmp_path / "hookproxy.toml").write_text("")
    assert load_with(files, "hookproxy.toml").settings.pack_rules[0].deny == ("new",), (
        "also if the file does not use it"
    )


def test_where_trust_is_required_the_files_of_a_pack_need_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.chdir(tmp_path)
    installed(tmp_path)
    text = 'require_trust = true\n\n[packs]\nuse = ["quiet"]\n'
    (tmp_path / "hookproxy.toml").write_text(text)
    with pytest.raises(ConfigError, match="is not trusted yet"):
        loaded(tmp_path, text)
    assert trust.main(["hookproxy.toml"]) == 0
    assert loaded(tmp_path, text).trust is not None
    folder = in_folder(tmp_path / "new", pack("2"))
    files = FileContext({"HOME": str(tmp_path)}, str(tmp_path), pack_folders={"quiet": (str(folder), "")})
    assert load_with(files, "hookproxy.toml").groups, "a version that is only tried is not trusted yet"


def test_a_gateway_uses_no_packs(tmp_path: Path) -> None:
    from hookproxy.config.gateway import load_gateway

    text = '[gateway]\nsocket = "x.sock"\n\n[servers.a]\ncommand = ["true"]\n\n[servers.a.packs]\nuse = ["quiet"]\n'
    (tmp_path / "gateway.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"packs"):
        load_gateway(str(tmp_path / "gateway.toml"), {"HOME": str(tmp_path)}, str(tmp_path))


_ALLOWING = """
[[hooks.PreToolUse]]
argv = ["sh", "-c", 'echo "$0"', '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}']

[[hooks.PermissionRequest]]
argv = ["sh", "-c", 'echo "$0"', '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}']
"""  # noqa: E501  # what hooks print is one line


@pytest.mark.slow
@pytest.mark.parametrize("rule", ['default = "deny"', 'ask = ["note"]'])
def test_a_hook_of_a_pack_that_allows_a_call_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rule: str
) -> None:
    installed(tmp_path, files={"hookproxy.toml": _ALLOWING})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    own = f'on_ask = "deny"\n[permissions]\n{rule}\n'
    (tmp_path / "hookproxy.toml").write_text(f'{own}[packs]\nuse = ["quiet"]\n')
    main(["try", "note", "{}", "--config", "hookproxy.toml", "--verbose"])
    output = capsys.readouterr()
    assert "note of server: refused" in output.out
    assert "only narrows" in output.out + output.err
    (tmp_path / "hookproxy.toml").write_text(own + _ALLOWING)
    main(["try", "note", "{}", "--config", "hookproxy.toml"])
    assert "note of server: allowed" in capsys.readouterr().out, "of the user's own file, it counts"


# --- while a session runs ---


def place_of(result: Loaded) -> Path:
    return Path(result.groups[0].source).parent


def failure(result: Loaded) -> str:
    """Why the first hook of the pack does not run."""
    assert result.trust is not None
    return result.trust.check(result.groups[0].hooks[0]).failure


@pytest.mark.parametrize("name", ["hooks/quiet.sh", "hookproxy.toml", "pack.toml", "hooks/helper.py"])
def test_what_runs_is_what_was_verified(tmp_path: Path, name: str) -> None:
    installed(tmp_path, files={"hooks/helper.py": "x = 1\n"})
    result = loaded(tmp_path, '[packs]\nuse = ["quiet"]\n')
    assert result.trust is not None
    assert not result.trust.required
    assert failure(result) == ""
    mark, path = result.trust.check(result.groups[0].hooks[0]), place_of(result) / name
    before = path.read_bytes()
    path.chmod(0o755)
    path.write_bytes(before + b"\n# more\n")
    assert f"{path} has changed since the pack was verified" in failure(result)
    assert "install the pack again" in failure(result) or "installs the pack again" in failure(result)
    assert result.trust.failure_after(mark, result.groups[0].hooks[0])
    path.write_bytes(before)
    assert failure(result) == "", "the same content is what was verified"
    path.parent.chmod(0o755)
    path.unlink()
    assert "is gone" in failure(result)


@pytest.mark.parametrize(
    "name",
    ["hooks/json.py", "json.py", "json/__init__.py", ".x", "hooks/.y", "hooks/__pycache__/guard.cpython-311.pyc"],
)
def test_nothing_joins_the_files_of_a_pack(tmp_path: Path, name: str) -> None:
    installed(tmp_path, files={"hooks/guard.py": "import json\n"})
    use = '[packs]\nuse = ["quiet"]\n'
    result = loaded(tmp_path, use)
    assert failure(result) == ""
    folder, path = place_of(result), place_of(result) / name
    for place in (folder, folder / "hooks"):
        place.chmod(0o755)
    assert failure(result) == "", "modes make no difference"
    path.parent.mkdir(exist_ok=True)
    joined = path.parent if path.parent not in (folder, folder / "hooks") else path
    for step in (lambda: None, lambda: path.write_bytes(b"")):
        step()
        if joined.exists():
            assert f"{joined} is not in the pack" in failure(result)
            with pytest.raises(ConfigError, match=r"not in (the pack|pack\.toml)"):
                loaded(tmp_path, use)
    path.unlink()
    if joined.is_dir():
        joined.rmdir()
    assert failure(result) == ""


def test_no_link_takes_the_place_of_a_packs_folder(tmp_path: Path) -> None:
    installed(tmp_path, files={"hooks/guard.py": "import json\n"})
    result = loaded(tmp_path, '[packs]\nuse = ["quiet"]\n')
    folder = place_of(result) / "hooks"
    folder.parent.chmod(0o755)
    folder.rename(tmp_path / "same")
    folder.symlink_to(tmp_path / "same")
    assert "is not a folder any more" in failure(result)


def test_hooks_of_the_file_are_not_held_with_those_of_its_pack(tmp_path: Path) -> None:
    installed(tmp_path)
    own = '[[hooks.PreToolUse]]\ncommand = "true"\n'
    result = loaded(tmp_path, f'{own}\n[packs]\nuse = ["quiet"]\n')
    path = place_of(result) / "hooks/quiet.sh"
    path.chmod(0o755)
    path.write_bytes(b"exit 0\n")
    assert result.trust is not None
    assert failure(result)
    assert result.trust.check(result.groups[1].hooks[0]).failure == ""


def test_a_packs_python_reads_no_compiled_modules_of_its_folder(tmp_path: Path) -> None:
    installed(tmp_path)
    (spec,) = loaded(tmp_path, '[packs]\nuse = ["quiet"]\n').groups[0].hooks
    assert dict(spec.env)["PYTHONPYCACHEPREFIX"] == "/dev/null/hookproxy"
