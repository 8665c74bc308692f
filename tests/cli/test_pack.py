"""`hookproxy pack` and `hookproxy init --from`: hostile packs are refused, and nothing runs that was not asked for."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hookproxy.archives import archive
from hookproxy.cli import init, pack, try_, uninstall
from hookproxy.model.errors import UserError
from hookproxy.packs.manifest import MANIFEST, SIGNATURE
from hookproxy.signing.keys import PrivateKey
from tests.support import packs
from tests.support.managed_folder import write
from tests.support.packs import in_folder, member, members, tar, wheel
from tests.support.signed_policy import new_key

KEY, OTHER = new_key(), new_key()
QUIET = packs.pack(key=KEY)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, empty."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return in_folder(tmp_path / "quiet", QUIET)


def data(home: Path) -> Path:
    return home / ".local/share/hookproxy/packs"


def installed(home: Path) -> list[str]:
    return sorted(path.name for path in data(home).glob("*/*")) if data(home).exists() else []


def own_keys(home: Path, *keys: PrivateKey) -> None:
    lines = ", ".join(f'"{key.public.line}"' for key in keys)
    write(home / ".config/hookproxy/hookproxy.toml", f"[packs]\nkeys = [{lines}]\n")


# --- installing ---


def test_a_pack_is_shown_and_nothing_is_written(
    source: Path, here: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init.main(["--from", str(source)]) == 0
    output = capsys.readouterr().out
    for text in (
        "quiet 1.0.0: nothing is sent",
        "PreToolUse write.*: sh hooks/quiet.sh",
        "send_*",
        KEY.public.fingerprint,
    ):
        assert text in output
    assert output.endswith("nothing was installed: the same with --install does all of this\n")
    assert not list(here.iterdir())
    assert not data(home).exists()


def test_all_hooks_of_a_pack_can_be_seen_before_it_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = "".join(f'[[hooks.PreToolUse]]\nargv = ["sh", "-c", "true {number}"]\n' for number in range(15))
    source = str(in_folder(tmp_path / "many", packs.pack(files={"hookproxy.toml": config})))
    assert init.main(["--from", source]) == 0
    assert "and 3 more hooks: --verbose shows all" in capsys.readouterr().out
    assert init.main(["--from", source, "--verbose"]) == 0
    output = capsys.readouterr().out
    assert [number for number in range(15) if f"true {number}\n" not in output] == []


@pytest.mark.parametrize("form", ["folder", "archive"])
def test_an_installed_pack_decides(
    source: Path, here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    if form == "archive":
        (tmp_path / "quiet.tar.gz").write_bytes(archive.write(QUIET))
        source = tmp_path / "quiet.tar.gz"
    (here / "hookproxy.toml").write_text("# mine\n[permissions]\ndeny = ['x'] # why\n")
    assert init.main(["--from", str(source), "--install"]) == 0
    shutil.rmtree(source) if source.is_dir() else source.unlink()
    assert (here / "hookproxy.toml").read_text().startswith("# mine\n[permissions]\ndeny = ['x'] # why\n")
    capsys.readouterr()
    assert try_.main(["write_file", "{}", "--config", "hookproxy.toml"]) == 1
    assert "no words" in capsys.readouterr().out
    assert try_.main(["send_mail", "{}", "--config", "hookproxy.toml"]) == 1
    assert try_.main(["read", "{}", "--config", "hookproxy.toml"]) == 0


def test_to_install_it_twice_changes_nothing(source: Path, here: Path, home: Path) -> None:
    assert init.main(["--from", str(source), "--install"]) == 0
    before, files = (here / "hookproxy.toml").read_bytes(), installed(home)
    assert init.main(["--from", str(source), "--install"]) == 0
    assert ((here / "hookproxy.toml").read_bytes(), installed(home)) == (before, files)


def test_where_it_cannot_be_named_it_is_not_installed(source: Path, here: Path, home: Path) -> None:
    (here / "hookproxy.toml").write_text("packs = { use = [] }\n")
    with pytest.raises(UserError, match=r"cannot be edited safely|laid out"):
        init.main(["--from", str(source), "--install"])
    assert not installed(home)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "leads out of the folder": (lambda: tar([*members(QUIET), (member("../evil"), b"x")]), "leads out"),
    "an absolute path": (lambda: tar([*members(QUIET), (member("/etc/evil"), b"x")]), "leads out"),
    "a link": (lambda: tar([*members(QUIET), (member("l", tarfile.SYMTYPE, "/etc/passwd"), b"")]), "l is a link"),
    "a hard link": (lambda: tar([*members(QUIET), (member("l", tarfile.LNKTYPE, MANIFEST), b"")]), "l is a hard link"),
    "a device": (lambda: tar([*members(QUIET), (member("d", tarfile.CHRTYPE), b"")]), "d is a device"),
    "a pipe": (lambda: tar([*members(QUIET), (member("p", tarfile.FIFOTYPE), b"")]), "p is a pipe"),
    "a bomb": (lambda: gzip.compress(bytes(archive.MOST_BYTES + 1)), "unpacks to more than"),
    "a file twice": (lambda: tar([*members(QUIET), (member(MANIFEST), b"x")]), "two files"),
    "a twin in another case": (
        lambda: tar([*members(QUIET), (member("PACK.toml"), b"x")]),
        "differ only in their case",
    ),
    "a folder's twin": (lambda: tar([*members(QUIET), (member("Hooks/x"), b"x")]), "differ only in their case"),
    "a file that is not named": (lambda: tar([*members(QUIET), (member("hooks/x.sh"), b"x")]), "is not in pack.toml"),
    "a named file that is not there": (
        lambda: archive.write({name: text for name, text in QUIET.items() if name != "hooks/quiet.sh"}),
        "hooks/quiet.sh is missing",
    ),
    "a changed file": (lambda: archive.write({**QUIET, "hooks/quiet.sh": b"exit 0"}), "is not the file that"),
    "a changed manifest": (lambda: archive.write({**QUIET, MANIFEST: QUIET[MANIFEST] + b"\n"}), "has signed"),
    "no manifest": (lambda: archive.write({"hookproxy.toml": b""}), "it has no pack.toml"),
    "something else": (lambda: b"PK\x03\x04" + bytes(600), "it is not a tar file"),
    "nothing": (lambda: b"", "it is empty"),
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("option", [[], ["--install"]])
def test_a_hostile_archive_is_refused(what: str, option: list[str], tmp_path: Path, here: Path, home: Path) -> None:
    make, why = HOSTILE[what]
    (tmp_path / "evil.tar").write_bytes(make())
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=why) as raised:
        init.main(["--from", str(tmp_path / "evil.tar"), *option])
    assert raised.value.hint
    assert not installed(home)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["link", "pipe", "not named", "secret key"])
def test_a_hostile_folder_is_refused(source: Path, home: Path, kind: str) -> None:
    path = source / "hooks" / "more"
    match kind:
        case "link":
            path.symlink_to("/etc/passwd")
        case "pipe":
            os.mkfifo(path)
        case "secret key":
            path.write_text("-----BEGIN PRIVATE KEY-----\n")
        case _:
            path.write_text("x")
    with pytest.raises(UserError, match=r"plain file|is not in pack.toml|private key"):
        init.main(["--from", str(source), "--install"])
    assert not installed(home)


@pytest.mark.parametrize("signer", ["nobody", "somebody else"])
@pytest.mark.parametrize("option", [[], ["--install"]])
def test_with_keys_only_what_one_of_them_has_signed_is_installed(
    tmp_path: Path, home: Path, signer: str, option: list[str]
) -> None:
    own_keys(home, KEY)
    source = in_folder(
        tmp_path / "x", packs.pack(key=None if signer == "nobody" else OTHER, needs='packages = ["x==1"]')
    )
    with pytest.raises(UserError, match=r"not signed") as raised:
        init.main(["--from", str(source), *option])
    assert "nothing was installed" in raised.value.hint
    assert not data(home).exists()
    assert init.main(["--from", str(in_folder(tmp_path / "y", QUIET)), "--install"]) == 0


@pytest.mark.parametrize(
    ("needs", "files", "why"),
    [
        ('hookproxy = "999"', {}, "needs hookproxy 999"),
        ('python = "3.999"', {}, r"need Python 3\.999"),
        ("", {"hookproxy.toml": "[audit]\nenabled = false\n"}, "audit: is not for a pack"),
        ("", {"hookproxy.toml": '[[hooks.PreToolUse]]\ncommand = "hooks/gone.sh"\n'}, "gone.sh"),
        (
            'packages = ["x==1"]',
            {"hookproxy.toml": '[[hooks.PreToolUse]]\ntype = "python"\ncall = "x:y"\n'},
            "for a Python function",
        ),
    ],
)
def test_a_pack_that_cannot_work_here_is_not_installed(
    tmp_path: Path, home: Path, here: Path, needs: str, files: dict[str, str], why: str
) -> None:
    source = in_folder(tmp_path / "x", packs.pack(needs=needs, files=files))
    with pytest.raises(UserError, match=why) as raised:
        init.main(["--from", str(source), "--install"])
    assert raised.value.hint
    assert not [name for name in installed(home) if name != "environments"]
    assert not list(here.iterdir())


def test_another_version_is_taken_by_update_alone(source: Path, tmp_path: Path) -> None:
    init.main(["--from", str(source), "--install"])
    other = in_folder(tmp_path / "y", packs.pack("0.9", key=KEY))
    with pytest.raises(UserError, match=r"quiet 1\.0\.0 is installed already") as raised:
        init.main(["--from", str(other), "--install"])
    assert "pack update quiet --from" in raised.value.hint


@pytest.mark.parametrize("words", [["guard", "--from", "x"], ["--from", "x", "--fail-closed"], ["--install"]])
def test_words_that_do_not_belong_together_are_an_error(words: list[str]) -> None:
    with pytest.raises(UserError) as raised:
        init.main(words)
    assert raised.value.hint


@pytest.mark.slow
@pytest.mark.timeout(300)  # pip takes ten seconds, and the machine may be busy
def test_packages_are_installed_only_when_asked_for(
    tmp_path: Path, here: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel(tmp_path / "wheels", "quietwords", "1.0", "WORDS = ['psst']\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    hook = "import json, sys, quietwords\nsys.exit(2 if quietwords.WORDS[0] in sys.stdin.read() else 0)\n"
    config = '[[hooks.PreToolUse]]\nargv = ["python3", "hook.py"]\n'
    needs = 'packages = ["quietwords==1.0"]'
    source = in_folder(tmp_path / "x", packs.pack(needs=needs, files={"hookproxy.toml": config, "hook.py": hook}))
    assert init.main(["--from", str(source)]) == 0
    output = capsys.readouterr().out
    assert "-m venv" in output
    assert "quietwords==1.0" in output
    assert "--no-deps" in output
    assert not data(home).exists()
    assert init.main(["--from", str(source), "--install"]) == 0
    assert try_.main(["say", '{"text": "psst"}', "--config", "hookproxy.toml"]) == 1
    assert try_.main(["say", '{"text": "hello"}', "--config", "hookproxy.toml"]) == 0
    shutil.rmtree(next((data(home) / "quiet/environments").iterdir()))
    with pytest.raises(UserError, match="the environment of the pack is not there"):
        try_.main(["say", "{}", "--config", "hookproxy.toml"])
    assert init.main(["--from", str(source), "--install"]) == 0, "to install it again repairs it"
    assert try_.main(["say", '{"text": "hello"}', "--config", "hookproxy.toml"]) == 0


# --- making ---


def key_file(folder: Path, name: str = "key") -> Path:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, timeout=30)
    return path


def test_what_is_made_can_be_verified_and_installed(
    tmp_path: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = key_file(tmp_path)
    folder = in_folder(tmp_path / "my-hooks", {"hookproxy.toml": packs.CONFIG.encode(), "hooks/quiet.sh": b"exit 0\n"})
    assert pack.main(["new", str(folder)]) == 0
    assert 'description = "Quiet: nothing is sent"' in (folder / MANIFEST).read_text()
    assert pack.main(["verify", str(folder)]) == 0
    assert "not signed" in capsys.readouterr().out
    assert pack.main(["sign", str(folder), "--key", str(key), "--output", "my-hooks.tar.gz"]) == 0
    assert pack.main(["verify", "my-hooks.tar.gz", "--keys", f"{key}.pub"]) == 0
    assert "one of the keys that count" in capsys.readouterr().out
    namespace = ["ssh-keygen", "-Y", "check-novalidate", "-n", "hookproxy-pack", "-s", str(folder / SIGNATURE)]
    subprocess.run(namespace, input=(folder / MANIFEST).read_bytes(), check=True, capture_output=True, timeout=30)
    with pytest.raises(UserError, match="is not signed by one of the keys"):
        pack.main(["verify", "my-hooks.tar.gz", "--keys", f"{key_file(tmp_path, 'other')}.pub"])
    assert init.main(["--from", "my-hooks.tar.gz", "--install"]) == 0


def test_a_signature_of_ssh_keygen_counts(tmp_path: Path, home: Path) -> None:
    key = key_file(tmp_path)
    folder = in_folder(tmp_path / "quiet", packs.pack())
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", "hookproxy-pack", "-f", key, folder / MANIFEST], check=True, timeout=30
    )
    write(home / ".config/hookproxy/hookproxy.toml", f'[packs]\nkeys = ["{key}.pub"]\n')
    assert pack.main(["verify", str(folder)]) == 0
    assert init.main(["--from", str(folder), "--install"]) == 0


@pytest.mark.parametrize("name", ["quiet.zip", "quiet.tar", "quiet.tar.bz2", "quiet.tar.XZ"])
def test_an_archive_of_another_form_is_not_written(tmp_path: Path, home: Path, name: str) -> None:
    folder = in_folder(tmp_path / "quiet", packs.pack())
    with pytest.raises(UserError, match=r"is a \.tar\.gz, and not") as raised:
        pack.main(["sign", str(folder), "--key", str(key_file(tmp_path)), "--output", str(tmp_path / name)])
    assert raised.value.hint == f"--output {tmp_path / 'quiet.tar.gz'}"
    assert not (tmp_path / name).exists()


def test_new_asks_for_a_description_where_the_configuration_begins_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "quiet").mkdir()
    (tmp_path / "quiet" / "hookproxy.toml").write_text('[permissions]\ndeny = ["x"]\n')
    assert pack.main(["new", str(tmp_path / "quiet")]) == 0
    assert "next: write as its description what it does, in one sentence, in " in capsys.readouterr().out
    (tmp_path / "quiet" / MANIFEST).unlink()
    (tmp_path / "quiet" / "hookproxy.toml").write_text('# Keeps x out.\n[permissions]\ndeny = ["x"]\n')
    assert pack.main(["new", str(tmp_path / "quiet")]) == 0
    assert "next: write as" not in capsys.readouterr().out


def test_new_renews_the_hashes_and_keeps_what_was_written(tmp_path: Path) -> None:
    folder = in_folder(tmp_path / "quiet", QUIET)
    text = (folder / MANIFEST).read_text().replace("description", "# why\ndescription")
    (folder / MANIFEST).write_text(text)
    (folder / "hooks" / "quiet.sh").write_text("exit 1\n")
    assert pack.main(["new", str(folder)]) == 0
    assert not (folder / SIGNATURE).exists(), "it was the signature of something else"
    assert (folder / MANIFEST).read_text().startswith(text.partition("[files]")[0])
    assert pack.main(["verify", str(folder)]) == 0


@pytest.mark.parametrize(
    ("name", "files", "why"),
    [
        ("quiet", {}, "has no hookproxy.toml"),
        ("Quiet Hooks", {"hookproxy.toml": b""}, "is not a name for a pack"),
        ("quiet", {"hookproxy.toml": b"[permissions]\nallow = ['*']\n"}, "allows nothing by itself"),
        ("quiet", {"hookproxy.toml": b"audit = {}\n"}, "is not for a pack"),
        ("quiet", {"hookproxy.toml": b"permisions = {}\n"}, "permisions: unknown key"),
        ("quiet", {"hookproxy.toml": b"", MANIFEST: b"x = ["}, "not TOML"),
        ("quiet", {"hookproxy.toml": b"", MANIFEST: b"x = 1\n"}, "x: unknown key"),
    ],
)
def test_what_cannot_be_a_pack_is_an_error(tmp_path: Path, name: str, files: dict[str, bytes], why: str) -> None:
    folder = in_folder(tmp_path / name, files)
    folder.mkdir(exist_ok=True)
    with pytest.raises(UserError, match=why) as raised:
        pack.main(["new", str(folder)])
    assert raised.value.hint
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


@pytest.mark.parametrize(
    ("right", "wrong", "what", "hint"),
    [
        ("description =", "descripton =", "4: descripton: unknown key", "did you mean 'description'?"),
        ('version = "1.0.0"', 'version = "v1.2"', "3: version: 'v1.2' is not of", 'write version = "1.2"'),
        ('version = "1.0.0"', "version = 1.0", "3: version: should be a string", 'write version = "1.0"'),
        ('version = "1.0.0"', "", "version is missing", 'add version = "1.0.0"'),
        ('name = "quiet"', 'name = "Quiet Hooks"', "2: name: 'Quiet Hooks' is", 'write name = "quiet-hooks"'),
        ('name = "quiet"', "name = quiet", "2: not TOML", 'name = "quiet"'),
        ("hookproxy-pack-1", "pack-1", "1: format: should be", "write format = 'hookproxy-pack-1'"),
        ("[needs]", '[needs]\npackages = ["regex"]', "7: needs.packages[0]: 'regex' is not", '"regex==1.0"'),
        ("[needs]", "[needs]\nprograms = ['a b']", "7: needs.programs[0]: 'a b' is", 'programs = ["a", "b"]'),
        ("[needs]", "[needs]\npython = '3.x'", "7: needs.python: '3.x' is", 'write python = "3"'),
        ("[needs]", "[neds]", "6: neds: unknown key", "did you mean 'needs'?"),
        ("size =", "sise =", "8: files.hookproxy.toml.sise: unknown key", "did you mean 'size'?"),
        ('sha256 = "', 'sha256 = "z', "8: files.hookproxy.toml.sha256: 'z", "pack new FOLDER writes the hashes"),
    ],
)
def test_a_mistake_in_the_manifest_has_its_line_and_its_repair(
    tmp_path: Path, right: str, wrong: str, what: str, hint: str
) -> None:
    folder = in_folder(tmp_path / "quiet", packs.pack())
    text = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(text.replace(right, wrong, 1))
    for main, words in ((pack.main, ["verify", str(folder)]), (init.main, ["--from", str(folder)])):
        with pytest.raises(UserError) as raised:
            main(words)
        assert what in raised.value.message
        assert MANIFEST in raised.value.message
        assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("config", "what", "hint"),
    [
        ("[permisions]\n", "hookproxy.toml:1: permisions: unknown key", "did you mean 'permissions'?"),
        ("[permissions]\ndney = []\n", "hookproxy.toml:2: permissions.dney: unknown key", "did you mean 'deny'?"),
        ("[audit]\n", "hookproxy.toml: audit: is not for a pack", "leave it out of the pack"),
    ],
)
def test_verify_reads_what_the_pack_says(tmp_path: Path, config: str, what: str, hint: str) -> None:
    folder = in_folder(tmp_path / "quiet", packs.pack(files={"hookproxy.toml": config}))
    with pytest.raises(UserError) as raised:
        pack.main(["verify", str(folder)])
    assert what in raised.value.message
    assert hint in raised.value.hint


def test_a_file_of_a_hook_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = in_folder(tmp_path / "quiet", packs.pack())
    (folder / "hooks" / "quiet.sh").rename(folder / "hooks" / "other.sh")
    assert pack.main(["new", str(folder)]) == 0
    assert "hooks.PreToolUse[0]: there is no file " in capsys.readouterr().err
    assert pack.main(["verify", str(folder)]) == 0
    assert "hookproxy.toml: hooks.PreToolUse[0]: there is no file hooks/quiet.sh" in capsys.readouterr().err
    (folder / "hooks" / "other.sh").rename(folder / "hooks" / "quiet.sh")
    assert pack.main(["new", str(folder)]) == 0
    assert pack.main(["verify", str(folder)]) == 0
    assert "there is no file" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["nwe"], ["sign", "x"], ["verify", "gone"], ["update"], ["remove", "quiet"]])
def test_a_wrong_command_line_is_an_error_with_a_hint(words: list[str]) -> None:
    with pytest.raises(UserError) as raised:
        pack.main(words)
    assert raised.value.hint


# --- updating ---

NEXT = packs.CONFIG.replace('deny = ["send_*"]', 'deny = ["read_secret"]')


def recorded(here: Path) -> None:
    """An audit with calls whose arguments are known, and one whose arguments are not."""
    calls = [("send_mail", "deny"), ("read_secret", "allow"), ("read_file", "allow")]
    common = {"v": 1, "time": "2026-11-20T10:00:00.000Z", "session": "s", "server": "mail", "hooks": [], "result": "ok"}
    lines = [
        {**common, "tool": tool, "id": number, "arguments": {"to": "x"}, "decision": decision, "ms": 1, "hook_ms": 0}
        for number, (tool, decision) in enumerate(calls)
    ]
    digest = {name: value for name, value in lines[0].items() if name != "arguments"} | {"arguments_sha256": "0" * 64}
    (here / "audit.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (*lines, digest)))
    config = '[packs]\nuse = ["quiet"]\n\n[audit]\nfile = "audit.jsonl"\narguments = "full"\n'
    (here / "hookproxy.toml").write_text(config)


@pytest.fixture
def updatable(source: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of an installed pack, in which a newer version is now."""
    recorded(here)
    assert init.main(["--from", str(source), "--install"]) == 0
    in_folder(source, packs.pack("1.1.0", key=KEY, files={"hookproxy.toml": NEXT}))
    capsys.readouterr()
    return source


@pytest.mark.usefixtures("updatable")
def test_an_update_shows_what_is_decided_differently_before_it_is_taken(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = installed(home)
    assert pack.main(["update", "--dry-run", "--config", "hookproxy.toml"]) == 1
    output = capsys.readouterr().out
    assert "1.0.0 → 1.1.0: ~ hookproxy.toml" in output
    assert "decided differently: 2 of 3 recorded calls\n" in output
    assert output.index("send_mail of mail") < output.index("read_secret of mail")
    assert "read_file" not in output
    assert installed(home) == before, "a dry run changes nothing"
    assert try_.main(["send_mail", "{}", "--config", "hookproxy.toml"]) == 1
    assert pack.main(["update", "quiet", "--config", "hookproxy.toml"]) == 0
    assert "quiet 1.1.0 counts from the next start on" in capsys.readouterr().out
    assert try_.main(["send_mail", "{}", "--config", "hookproxy.toml"]) == 0
    assert try_.main(["read_secret", "{}", "--config", "hookproxy.toml"]) == 1
    capsys.readouterr()
    assert pack.main(["update", "--config", "hookproxy.toml"]) == 0
    assert "there is nothing new" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (lambda: packs.pack("0.9", key=KEY), r"version 0\.9 is older than version 1\.0\.0"),
        (lambda: packs.pack("1.0.0", key=KEY, files={"x": ""}), "with another content"),
        (lambda: packs.pack("1.1.0", key=OTHER), "signed by another key"),
        (lambda: packs.pack("1.1.0"), "is not signed, and the installed version is"),
        (lambda: packs.pack("1.1.0", key=KEY, name="other"), "is the pack other, and not quiet"),
        (lambda: {**packs.pack("1.1.0", key=KEY), "x": b""}, "is not in pack.toml"),
        (lambda: packs.pack("1.1.0", key=KEY, files={"hookproxy.toml": 'on_ask = "allow"\n'}), "is not for a pack"),
        (lambda: packs.pack("1.1.0", key=KEY, needs='packages = ["x==1"]'), "packages that are not installed"),
    ],
)
def test_an_update_that_must_not_be_taken_changes_nothing(
    updatable: Path, home: Path, files: Callable[[], dict[str, bytes]], why: str
) -> None:
    before = installed(home)
    in_folder(updatable, files())
    with pytest.raises(UserError, match=why) as raised:
        pack.main(["update", "--config", "hookproxy.toml"])
    assert raised.value.hint
    assert installed(home) == before
    assert try_.main(["send_mail", "{}", "--config", "hookproxy.toml"]) == 1, "the version before decides"


@pytest.mark.slow
def test_functions_of_both_versions_are_compared_although_their_modules_have_one_name(
    tmp_path: Path, here: Path, capsys: pytest.CaptureFixture[str], forgets_hooks: None
) -> None:
    def version(number: str, word: str) -> dict[str, bytes]:
        config = '[[hooks.PreToolUse]]\ntype = "python"\ncall = "guard_of_pack:check"\n'
        text = (
            f"def check(document):\n    return {{'decision': 'block'}} if '{word}' in document['tool_name'] else None\n"
        )
        return packs.pack(number, files={"hookproxy.toml": config, "guard_of_pack.py": text})

    recorded(here)
    source = in_folder(tmp_path / "x", version("1", "send"))
    init.main(["--from", str(source), "--install"])
    in_folder(source, version("2", "secret"))
    capsys.readouterr()
    assert pack.main(["update", "--dry-run", "--config", "hookproxy.toml"]) == 1
    output = capsys.readouterr().out
    assert "2 of 3 recorded calls" in output
    assert "read_file" not in output


def cases(*named: tuple[str, str, str]) -> str:
    """A file with cases: the name, the tool, the decision."""
    form = '[[case]]\nname = "{}"\ncall = {{ tool = "{}" }}\nexpect = {{ decision = "{}" }}\n'
    return "\n".join(form.format(*case) for case in named)


def test_an_update_is_tried_on_the_cases_of_both_versions(
    tmp_path: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = cases(("mail", "send_mail", "deny"), ("file", "read_file", "allow"))
    source = in_folder(tmp_path / "x", packs.pack(files={"tests/quiet.toml": old}))
    assert init.main(["--from", str(source), "--install"]) == 0
    new = {"hookproxy.toml": NEXT, "tests/other.toml": cases(("secret", "read_secret", "deny"))}
    in_folder(source, packs.pack("1.1.0", files=new))
    capsys.readouterr()
    assert pack.main(["update", "--dry-run", "--config", "hookproxy.toml"]) == 1
    output = capsys.readouterr().out
    assert "the case mail  quiet.toml:1\n  was      deny, by the permission rule send_*" in output
    assert "the case secret  other.toml:1\n  was      allow\n  would be deny" in output
    assert "decided differently: 2 of 3 cases\n" in output
    assert pack.main(["update", "--config", "hookproxy.toml"]) == 0


def test_a_version_that_fails_a_case_of_its_own_is_not_taken(
    tmp_path: Path, here: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = in_folder(tmp_path / "x", packs.pack())
    init.main(["--from", str(source), "--install"])
    before = installed(home)
    in_folder(source, packs.pack("1.1.0", files={"tests/quiet.toml": cases(("wrong", "read_file", "deny"))}))
    assert pack.main(["update", "--dry-run", "--config", "hookproxy.toml"]) == 1
    assert "with 1.1.0: the case wrong" in capsys.readouterr().out
    with pytest.raises(UserError, match="fails 1 case of its own") as raised:
        pack.main(["update", "--config", "hookproxy.toml"])
    assert raised.value.hint
    assert installed(home) == before


def test_an_older_version_does_not_get_in_by_removing_the_pack_first(
    tmp_path: Path, here: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = in_folder(tmp_path / "new", packs.pack("1.1.0", key=KEY))
    older = in_folder(tmp_path / "old", packs.pack("1.0.0", key=KEY))
    other = in_folder(tmp_path / "other", packs.pack("1.2.0", key=None))
    assert init.main(["--from", str(newer), "--install"]) == 0
    assert pack.main(["remove", "quiet"]) == 0
    for source, why in ((older, "older than version 1.1.0, which was installed before"), (other, "it is not signed")):
        with pytest.raises(UserError, match=why) as raised:
            init.main(["--from", str(source), "--install"])
        assert "hookproxy pack remove quiet --forget" in raised.value.hint
        assert installed(home) == ["removed.json"]
    assert init.main(["--from", str(newer), "--install"]) == 0, "the same version may come back"
    assert pack.main(["remove", "quiet", "--forget"]) == 0
    assert init.main(["--from", str(older), "--install"]) == 0


@pytest.mark.usefixtures("updatable")
def test_packs_are_listed_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pack.main(["list"]) == 0
    assert f"quiet  1.0.0    {KEY.public.fingerprint}" in capsys.readouterr().out
    assert uninstall.main([]) == 0
    assert "  # an installed pack\n  hookproxy pack remove quiet\n" in capsys.readouterr().out
    assert pack.main(["remove", "quiet"]) == 0
    assert installed(home) == ["removed.json"]
    with pytest.raises(UserError, match="there is no pack quiet"):
        try_.main(["send_mail", "{}", "--config", "hookproxy.toml"])
