"""`hookproxy pack`: makes packs of hooks, rules and tests, and takes newer versions of those that are installed.

`new`, `sign` and `verify` are for whoever makes one, `list`, `update` and `remove` for whoever has installed one with
`hookproxy init --from`. Exit status: 0; 1 if `update --dry-run` finds calls that would be decided differently; 2 if it
failed, and then nothing has changed.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..model.counts import counted
from ..model.errors import ConfigError, UserError, not_installed, not_written
from .common import check_archive_name, show_line, tell, working_directory
from .key_files import private_key, public_keys
from .layout import show_table
from .options import Parser

if TYPE_CHECKING:
    from ..packs.manifest import Pack
    from ..packs.store import Installed
    from .pack_install import Machine

_SUFFIX: Final = ".tar.gz"
_MOST_PROBLEMS: Final = 5  # that are reported: with two lines each, they fit a screen beside the rest
_TO_DESCRIBE: Final = "what it does, in one sentence"


def main(arguments: Sequence[str]) -> int:
    """Do what the subverb says. Returns the exit status."""
    subverbs = {"new": _new, "sign": _sign, "verify": _verify, "list": _list, "update": _update, "remove": _remove}
    return build_parser().run_subverb(arguments, subverbs, subverb_parsers())


def build_parser() -> Parser:
    """The parser of the verb alone, for its help."""
    return Parser(
        "pack",
        "Make a pack of hooks, rules and tests, or take a newer version of one that is installed. See also: pack new, "
        "pack sign, pack verify, pack list, pack update, pack remove; init --from installs one.",
        rest="new|sign|verify|list|update|remove",
        subverbs=subverb_parsers,
    )


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    new = Parser(
        "pack new", "Write pack.toml into a folder with hookproxy.toml and hooks; or renew the hashes of files in it."
    )
    sign = Parser("pack sign", "Renew the hashes of files in pack.toml, and sign it: pack.toml.sig.")
    verify = Parser("pack verify", "Check a pack as a machine that installs it would, and say who has signed it.")
    for parser in (new, sign):
        parser.add_argument("folder", metavar="FOLDER", help="the folder with hookproxy.toml, hooks and tests")
    sign.add_argument("--key", metavar="KEY", required=True, help="the private Ed25519 key, as ssh-keygen makes it")
    for parser in (new, sign):
        parser.add_argument("-o", "--output", metavar="FILE", help="also write all of it into one file: NAME.tar.gz")
    verify.add_argument("source", metavar="FOLDER|ARCHIVE", help="the folder or the archive")
    verify.add_argument(
        "--keys", metavar="FILE", help="a file with the public keys that count (default: those of [packs] keys)"
    )
    update = Parser(
        "pack update",
        "Show what a newer version of a pack would decide differently, for its tests and for the calls in the audit, "
        "and take it. Hooks of both versions really run for that; no call is forwarded.",
    )
    update.add_argument("name", metavar="NAME", nargs="?", help="the pack (default: all that are installed)")
    update.add_argument(
        "--from", dest="source", metavar="FOLDER|ARCHIVE", help="where the version is (default: where the last was)"
    )
    update.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    update.add_argument(
        "--install", action="store_true", help="install packages that its hooks need, into an environment of their own"
    )
    update.add_argument("--audit", metavar="FILE", help="the audit with the calls (default: the configuration's)")
    update.add_argument("--verbose", action="store_true", help="show all calls that would be decided differently")
    update.add_common("--config")
    remove = Parser("pack remove", "Remove an installed pack with its environments.")
    remove.add_argument("name", metavar="NAME", help="the pack")
    remove.add_argument(
        "--forget",
        action="store_true",
        help="also forget its highest version and its key, so that an older one may be installed",
    )
    listing = Parser("pack list", "Show which packs are installed.")
    listing.add_common("--verbose")
    return {"new": new, "sign": sign, "verify": verify, "list": listing, "update": update, "remove": remove}


# --- for whoever makes one ---


def _new(options: Namespace) -> int:
    from ..packs.manifest import MANIFEST, SIGNATURE

    check_archive_name(options.output)
    folder = os.path.join(working_directory(), options.folder)
    path, text, files, executable = _manifest(folder)
    _write(path, text)
    _remove_signature(folder)
    show_line(f"wrote {os.path.join(options.folder, MANIFEST)}: {counted(len(files), 'file')}; it is not signed")
    _write_archive(options, {**files, MANIFEST: text.encode()}, executable, without=SIGNATURE)
    if _TO_DESCRIBE in text:
        show_line(f"next: write as its description {_TO_DESCRIBE}, in {os.path.join(options.folder, MANIFEST)}")
    if options.output is None:
        show_line(f"next: hookproxy pack sign {options.folder} --key KEY, or hookproxy init --from {options.folder}")
    return 0


def _sign(options: Namespace) -> int:
    from ..archives.listed import Refused
    from ..packs import make
    from ..packs.manifest import MANIFEST, SIGNATURE, verify

    folder = os.path.join(working_directory(), options.folder)
    check_archive_name(options.output)
    key = private_key(options.key)
    path, text, files, executable = _manifest(folder, must_be_there=True)
    signed = {**files, MANIFEST: text.encode(), SIGNATURE: make.signature(text, key)}
    try:
        pack = verify(signed, [key.public])
    except Refused as problem:
        raise UserError(f"{options.folder}: {problem}", "correct that, and sign again") from None
    _remove_signature(folder)  # so that there is never one that is wrong
    _write(path, text)
    _write(os.path.join(folder, SIGNATURE), signed[SIGNATURE])
    show_line(f"{pack.name} {pack.version}: {counted(len(files), 'file')}, signed with {key.public.fingerprint}")
    _write_archive(options, signed, executable)
    return 0


def _manifest(folder: str, *, must_be_there: bool = False) -> tuple[str, str, dict[str, bytes], frozenset[str]]:
    """The path of a folder's manifest, its text for the files that are there, and these. Raises UserError."""
    from .. import __version__
    from ..archives.folder import files_of
    from ..config.pack_manifest import explained
    from ..packs import make
    from ..packs.manifest import CONFIG, MANIFEST, SIGNATURE, InvalidManifest

    if not os.path.isdir(folder):
        raise ConfigError(folder, "is not a folder", "name the folder with hookproxy.toml and the hooks")
    files, executable = files_of(folder)
    path = os.path.join(folder, MANIFEST)
    present = files.pop(MANIFEST, None)
    files.pop(SIGNATURE, None)
    if CONFIG not in files:
        raise ConfigError(folder, f"has no {CONFIG}", f"hookproxy init --folder {folder} writes one to begin with")
    if present is not None:
        try:
            text = present.decode()
        except UnicodeDecodeError:
            raise ConfigError(path, "is not UTF-8", "save it as UTF-8") from None
    elif must_be_there:
        raise ConfigError(folder, f"has no {MANIFEST}", f"write it: hookproxy pack new {folder}")
    else:
        ours = ".".join(__version__.split("+")[0].split(".")[:2])
        name = os.path.basename(os.path.realpath(folder))
        text = make.new_manifest(name, _description(files[CONFIG].decode(errors="replace")), ours)
    _check_contents(folder)
    try:
        return path, make.with_files(path, text, files, executable), files, executable
    except InvalidManifest as problem:
        raise explained(path, problem) from None


def _description(config: str) -> str:
    """The first sentence of the comment at the head of a configuration; or what to write there."""
    lines = [line.lstrip("# ").strip() for line in config.splitlines() if line.startswith("# ")]
    sentence = lines[0].partition(". ")[0].rstrip(".") if lines else ""
    return sentence or _TO_DESCRIBE


def _check_contents(folder: str) -> None:
    """Report programs and files of hooks that are not there. Raises ConfigError for what nobody could install."""
    from ..config.load import read_layer
    from ..config.pack_layer import read_pack
    from ..trust.sources import FileContext
    from .pack_install import hook_problems

    _tell(hook_problems(read_pack(folder, "", FileContext(os.environ, working_directory()), read_layer)), folder)


def _tell(problems: Sequence[str], folder: str) -> None:
    """Report the first of a pack's problems, and where all of them are."""
    tell(*problems[:_MOST_PROBLEMS])
    if len(problems) > _MOST_PROBLEMS:
        config = os.path.join(folder, "hookproxy.toml")
        tell(f"and {len(problems) - _MOST_PROBLEMS} more: hookproxy check --config {config} shows all")


def _remove_signature(folder: str) -> None:
    from ..packs.manifest import SIGNATURE

    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, SIGNATURE))


def _write(path: str, content: str | bytes) -> None:
    from ..files.replace import replace_file

    try:
        replace_file(path, content.encode() if isinstance(content, str) else content, mode=0o644)
    except OSError as error:
        raise not_written(path, error) from None


def _write_archive(
    options: Namespace, files: Mapping[str, bytes], executable: frozenset[str], *, without: str = ""
) -> None:
    from ..archives import archive

    if options.output is None:
        return
    try:
        data = archive.write({name: content for name, content in files.items() if name != without}, executable)
    except ValueError as problem:
        raise UserError(f"{options.folder}: {problem}", "leave out what is not part of the pack") from None
    _write(os.path.join(working_directory(), options.output), data)
    show_line(f"wrote {options.output}: {len(data)} bytes")


def _verify(options: Namespace) -> int:
    from ..archives.listed import Refused
    from ..config.pack_manifest import explained
    from ..packs import make
    from ..packs.manifest import MANIFEST, InvalidManifest, verify
    from ..signing.keys import EXTRA
    from ..trust.sources import FileContext
    from .pack_install import check_python, read_in_copy

    path = os.path.join(working_directory(), options.source)
    keys = public_keys(options.keys) if options.keys is not None else _machine().keys
    files, _executable = make.read_source(path)
    try:
        pack = verify(files, keys)
        layer, problems = read_in_copy(pack, FileContext(os.environ, working_directory()))
        check_python(pack, layer)
    except InvalidManifest as problem:
        raise explained(os.path.join(options.source, MANIFEST), problem) from None
    except Refused as problem:
        hint = "if you made the pack: hookproxy pack new writes its manifest anew, and pack sign signs it"
        raise UserError(f"{options.source}: {problem}; nobody can install it", hint) from None
    except ModuleNotFoundError:
        raise not_installed("a signed pack", "cryptography", EXTRA) from None
    show_line(f"{pack.name} {pack.version}: {counted(len(pack.manifest.files), 'file')}, as {pack.digest}")
    show_line(_signed(pack, has_keys=keys is not None))
    _tell(problems, options.source)
    return 0


def _signed(pack: Pack, *, has_keys: bool) -> str:
    if pack.signed_by is None:
        return "not signed: whoever could change its files could have made another pack of it"
    counts = "one of the keys that count" if has_keys else "a key of which nobody has said that it counts: [packs] keys"
    return f"signed with {pack.signed_by.fingerprint}, {counts}"


# --- for whoever has installed one ---


def _machine() -> Machine:
    from .pack_install import machine

    return machine(working_directory())


def _list(options: Namespace) -> int:
    here = _machine()
    rows = [("NAME", "VERSION", "SIGNED BY", "FROM")]
    for name in here.store.names():
        state = here.store.installed(name)
        assert state is not None, "names() has looked"
        rows.append((name, state.version, _fingerprint(state), state.source))
    if len(rows) == 1:
        show_line("no pack is installed; hookproxy init --from PACK --install installs one")
    else:
        show_table(rows, verbose=options.verbose)
    return 0


def _fingerprint(state: Installed) -> str:
    from ..signing.keys import parse_public

    return parse_public(state.signed_by).fingerprint if state.signed_by else "nobody"


def _remove(options: Namespace) -> int:
    here = _machine()
    here.store.remove(options.name, forget=options.forget)
    show_line(f"removed {options.name}; a hookproxy.toml whose [packs] use names it does not start any more")
    return 0


def _update(options: Namespace) -> int:
    here = _machine()
    names = [options.name] if options.name is not None else here.store.names()
    if not names:
        raise UserError("no pack is installed", "hookproxy init --from PACK --install installs one")
    if options.source is not None and len(names) > 1:
        raise UserError("--from is the source of one pack", f"name it: hookproxy pack update {names[0]} --from …")
    from .pack_update import update

    return max([update(here, name, options) for name in names])
