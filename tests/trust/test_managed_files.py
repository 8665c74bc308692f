"""The administrator's files are used only if nobody but root can change them, on the whole path from /."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hookproxy.config import load as configuration
from hookproxy.config.load import Loaded, load
from hookproxy.model.errors import ConfigError
from hookproxy.model.settings import OnAsk, OnFailure
from hookproxy.trust import managed_files
from tests.support.managed_folder import NOBODY, ROOT_ONLY, as_user, write

pytestmark = [ROOT_ONLY, pytest.mark.slow]


def loaded(**environ: str) -> Loaded:
    return load(None, (), None, {**os.environ, **environ}, "/")


def refused() -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loaded()
    return caught.value


def test_without_the_folder_nothing_is_managed(etc: Path) -> None:
    etc.rmdir()
    assert loaded().managed is None
    etc.mkdir()


def test_an_empty_folder_manages_nothing(etc: Path) -> None:
    assert loaded().managed is None


def test_managed_toml_is_read_first_then_the_others_by_name_and_later_files_win(etc: Path) -> None:
    write(etc / "managed.toml", 'on_ask = "allow"\n[permissions]\ndeny = ["a"]\n')
    write(etc / "managed.d" / "20.toml", 'on_ask = "deny"\n[permissions]\ndeny = ["c"]\n')
    write(etc / "managed.d" / "10.toml", 'on_ask = "elicit"\n[permissions]\ndeny = ["b"]\n')
    for other in (".hidden.toml", "readme", "40.toml~", "x.json"):
        write(etc / "managed.d" / other, "nonsense")
    found = loaded()
    assert found.managed
    assert [Path(file).name for file in found.managed.files] == ["managed.toml", "10.toml", "20.toml"]
    assert found.settings.on_ask is OnAsk.DENY
    assert found.settings.managed
    assert found.settings.managed.deny == ("a", "b", "c")


def test_no_environment_variable_bypasses_managed_files(etc: Path, tmp_path: Path) -> None:
    write(etc / "managed.toml", 'on_failure = "deny"')
    empty = str(tmp_path)
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "CLAUDE_PROJECT_DIR", "HOOKPROXY_MANAGED")
    for environ in ({}, *({name: empty} for name in names)):
        assert load(None, (), None, environ, "/").settings.on_failure is OnFailure.DENY


def _writable_by_others(etc: Path) -> str:
    (etc / "managed.toml").chmod(0o646)
    return f"{etc}/managed.toml: is writable by others"


def _writable_by_its_group(etc: Path) -> str:
    (etc / "managed.toml").chmod(0o664)
    return f"{etc}/managed.toml: is writable by its group"


def _folder_writable(etc: Path) -> str:
    etc.chmod(0o777)
    return f"{etc}: is writable by others"


def _folder_sticky(etc: Path) -> str:
    etc.chmod(0o1777)
    return f"{etc}: is writable by others"


def _folder_of_another_user(etc: Path) -> str:
    os.chown(etc, NOBODY, 0)
    return f"{etc}: belongs to user {NOBODY} and not to root"


def _file_of_another_user(etc: Path) -> str:
    os.chown(etc / "managed.toml", NOBODY, 0)
    return f"{etc}/managed.toml: belongs to user {NOBODY} and not to root"


def _link_into_unsafe_folder(etc: Path) -> str:
    target = write(etc / "theirs" / "x.toml", "")
    (etc / "theirs").chmod(0o777)
    (etc / "managed.toml").unlink()
    (etc / "managed.toml").symlink_to(target)
    return f"{etc}/theirs: is writable by others"


def _link_of_another_user(etc: Path) -> str:
    target = write(etc / "real.toml", "")
    (etc / "managed.toml").unlink()
    (etc / "managed.toml").symlink_to(target)
    os.chown(etc / "managed.toml", NOBODY, 0, follow_symlinks=False)
    return f"{etc}/managed.toml: belongs to user {NOBODY} and not to root"


def _linked_folder(etc: Path) -> str:
    write(etc / "theirs" / "a.toml", "")
    os.chown(etc / "theirs", NOBODY, 0)
    (etc / "managed.d").symlink_to("theirs")
    return f"{etc}/theirs: belongs to user {NOBODY}"


def _hard_link(etc: Path) -> str:
    theirs = write(etc / "theirs", "")
    os.chown(theirs, NOBODY, 0)
    (etc / "managed.toml").unlink()
    os.link(theirs, etc / "managed.toml")
    return f"{etc}/managed.toml: belongs to user {NOBODY}"


def _pipe(etc: Path) -> str:
    (etc / "managed.toml").unlink()
    os.mkfifo(etc / "managed.toml", 0o644)
    return f"{etc}/managed.toml: is not a regular file"


def _folder_in_its_place(etc: Path) -> str:
    (etc / "managed.toml").unlink()
    (etc / "managed.toml").mkdir()
    return f"{etc}/managed.toml: is a folder, not a file"


def _endless_links(etc: Path) -> str:
    (etc / "managed.toml").unlink()
    (etc / "managed.toml").symlink_to("managed.toml")
    return f"{etc}/managed.toml: cannot be read: Too many levels"


def _file_in_place_of_the_folder(etc: Path) -> str:
    write(etc / "managed.d", "")
    return f"{etc}/managed.d: cannot be read: Not a directory"


def _broken_link(etc: Path) -> str:
    (etc / "managed.toml").unlink()
    (etc / "managed.toml").symlink_to("gone")
    return f"{etc}/managed.toml: is a broken link"


@pytest.mark.parametrize(
    "spoil",
    [
        _writable_by_others,
        _writable_by_its_group,
        _folder_writable,
        _folder_sticky,
        _folder_of_another_user,
        _file_of_another_user,
        _link_into_unsafe_folder,
        _link_of_another_user,
        _linked_folder,
        _hard_link,
        _pipe,
        _folder_in_its_place,
        _endless_links,
        _broken_link,
        _file_in_place_of_the_folder,
    ],
)
def test_a_managed_file_that_somebody_else_can_change_stops_start_up(etc: Path, spoil: Callable[[Path], str]) -> None:
    write(etc / "managed.toml", "")
    message = spoil(etc)
    error = refused()
    assert error.message.startswith(message)
    if "writable" in message:
        assert error.hint == f"chmod go-w {message.partition(':')[0]}"
    elif "belongs" in message:
        assert error.hint.startswith(("chown root: ", "chown -h root: "))


def test_a_link_of_root_to_a_file_of_root_is_followed(etc: Path) -> None:
    write(etc / "inner" / "real.toml", 'on_ask = "deny"')
    (etc / "linked").symlink_to("inner")
    (etc / "managed.toml").symlink_to(etc / "linked" / ".." / "linked" / "real.toml")
    assert loaded().settings.on_ask is OnAsk.DENY


def test_a_folder_that_is_a_broken_link_stops_start_up(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (etc / "link").symlink_to("not-mounted")
    monkeypatch.setattr(configuration, "MANAGED_FOLDER", str(etc / "link"))
    assert refused().message == f"{etc}/link: is a broken link"


def test_a_broken_file_stops_start_up(etc: Path) -> None:
    write(etc / "managed.d" / "a.toml", "on_ask = 7")
    assert refused().message.startswith(f"{etc}/managed.d/a.toml:1: on_ask")


def test_a_named_hook_file_must_belong_to_root_too(etc: Path, tmp_path: Path) -> None:
    theirs = write(tmp_path / "hooks.json", "{}")
    write(etc / "managed.toml", f'[[use]]\nfile = "{theirs}"\ndialect = "claude"\n')
    assert "is writable by others" in refused().message  # /tmp is: whoever can replace the folder replaces the file


@pytest.mark.parametrize("how", ["./guard.sh", "sh guard.sh", "cat | sh -c 'exec ./guard.sh'", "FOO=1 ./guard.sh"])
def test_a_script_that_somebody_else_can_change_stops_start_up(etc: Path, how: str) -> None:
    script = write(etc / "guard.sh", "#!/bin/sh\n", 0o755)
    write(etc / "managed.toml", f'[[hooks.PreToolUse]]\ncommand = "{how}"\n')
    assert loaded().groups[0].managed
    script.chmod(0o775)
    error = refused()
    assert error.message.startswith(f"{etc}/managed.toml: hooks.PreToolUse[0]: starts {script}, and {script}: is writa")
    assert error.hint == f"chmod go-w {script}"


def test_a_program_that_only_the_shell_can_expand_is_noted(etc: Path) -> None:
    write(etc / "managed.toml", "[[hooks.PreToolUse]]\ncommand = '\"$CLAUDE_PROJECT_DIR\"/guard.sh'\n")
    (note,) = loaded().notes
    assert note.endswith(
        "$CLAUDE_PROJECT_DIR/guard.sh, which only a shell can expand: hookproxy cannot check that it belongs to root"
    )


def test_a_prompter_that_somebody_else_can_change_stops_start_up(etc: Path) -> None:
    write(etc / "ask", "#!/bin/sh\n", 0o777)
    write(etc / "managed.toml", 'on_ask_fallback = { command = ["./ask"] }')
    assert "on_ask_fallback: starts" in refused().message


def test_managed_hooks_inherit_no_variables_that_affect_programs(etc: Path) -> None:
    names = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LD_PRELOAD", "BASH_ENV", "PYTHONPATH", "IFS")
    clean = managed_files.environment({**dict.fromkeys(names, "evil"), "TOKEN": "secret", "OTHER": "secret"}, ["TOKEN"])
    assert set(clean) == {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TOKEN"}
    assert clean["TOKEN"] == "secret"
    assert "evil" not in clean.values()
    assert not os.path.lexists(clean["HOME"])  # files in the home folder belong to the user, too
    assert managed_files.environment({}, real_home=True)["HOME"] == os.path.expanduser(f"~{clean['USER']}")


def test_a_rule_that_depends_on_the_servers_name_is_noted(etc: Path) -> None:
    write(etc / "managed.toml", '[permissions]\ndeny = ["mcp__github__delete_*", "mcp__*__drop", "drop"]\n')
    (note,) = loaded().notes
    assert note.startswith(
        f"{etc}/managed.toml: permissions.deny[0] 'mcp__github__delete_*' depends on the server's name"
    )


def test_limits_and_matchers_that_depend_on_the_servers_name_are_noted(etc: Path) -> None:
    limit = '[[limits]]\ntool = "mcp__git__*"\ncalls = 1\nper = "day"\n'
    hook = '[[hooks.PreToolUse]]\ncommand = "true"\nmatcher = '
    rules = '[permissions]\nallow = ["mcp__git__read"]\n'
    write(etc / "managed.toml", f'{rules}{limit}{hook}"Bash|mcp__git__.*"\n{hook}"mcp__.*__drop|drop"\n')
    places = [note.partition(" depends on the server's name")[0] for note in loaded().notes]
    assert places == [
        f"{etc}/managed.toml: permissions.allow[0] 'mcp__git__read'",
        f"{etc}/managed.toml: limits[0] 'mcp__git__*'",
        f"{etc}/managed.toml: hooks.PreToolUse[0]: its matcher 'Bash|mcp__git__.*'",
    ]


def test_the_audit_option_does_not_replace_a_managed_audit_file(etc: Path) -> None:
    write(etc / "managed.toml", '[audit]\nfile = "/var/log/hookproxy.jsonl"\nrequired = true\n')
    found = load(None, (), "/dev/null", os.environ, "/")
    assert (found.settings.audit_file, found.settings.audit_required) == ("/var/log/hookproxy.jsonl", True)
    assert found.notes == (
        f"--audit /dev/null is not used: {etc}/managed.toml: audit.file takes precedence, because it is managed",
    )


def test_a_required_managed_audit_that_is_switched_off_stops_start_up(etc: Path) -> None:
    write(etc / "managed.toml", "[audit]\nrequired = true\nenabled = false\n")
    assert refused().message == f"{etc}/managed.toml: audit.required is true, but audit.enabled is false"
    write(etc / "managed.toml", "[audit]\nrequired = true\n")
    assert load(None, (), "/a", os.environ, "/").settings.audit_required


def test_managed_only_runs_no_other_hooks_and_only_the_administrator_may_set_it(etc: Path, home: Path) -> None:
    own = write(home / ".config/hookproxy/hookproxy.toml", '[[hooks.PreToolUse]]\ncommand = "true"\n')
    write(etc / "managed.toml", 'managed_only = true\n[[hooks.PreToolUse]]\ncommand = "false"\n')
    found = loaded()
    assert [group.source for group in found.groups] == [f"{etc}/managed.toml"]
    assert found.notes == (f"{own}: its hooks do not run: {etc}/managed.toml sets managed_only",)
    own.write_text("managed_only = false\n")
    assert len(loaded().groups) == 1
    own.write_text("managed_only = true\n")
    assert refused().message == f"{own}: only the administrator may set managed_only"


# --- as somebody who is not root ---


def as_nobody(user: int, folder: Path) -> str:
    """What this user gets when it loads the configuration, in a separate process."""
    script = (
        "import sys\nfrom hookproxy.config import load as config\nconfig.MANAGED_FOLDER = sys.argv[1]\n"
        "try:\n    print(config.load(None, (), None, {'HOME': '/'}, '/').settings.on_ask)\n"
        "except Exception as error:\n    print(error)\n"
    )
    command = [*as_user(user), sys.executable, "-c", script, str(folder)]
    return subprocess.run(command, cwd="/", stdout=subprocess.PIPE, text=True, timeout=30, check=True).stdout


def test_other_users_must_be_able_to_read_managed_files(etc: Path, nobody: int) -> None:
    file = write(etc / "managed.toml", 'on_ask = "deny"')
    assert as_nobody(nobody, etc) == "deny\n"
    file.chmod(0o600)
    assert f"{file}: cannot be read: Permission denied\nhint: " in as_nobody(nobody, etc)
    file.chmod(0o644)
    etc.chmod(0o700)
    assert "cannot be read: Permission denied" in as_nobody(nobody, etc)
    etc.chmod(0o711)  # to be entered, but not to be looked through
    (etc / "managed.d").mkdir(mode=0o711)
    assert f"{etc}/managed.d: cannot be read: Permission denied" in as_nobody(nobody, etc)
