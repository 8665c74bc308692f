"""`hookproxy policy`: the signed policy of this machine, and how one is made.

`status`, `update`, `rollback` and `resume` are for the machine that uses one: for what the administrator's managed.toml
names, or with `--config` for a gateway. `sign`, `pack`, `keys` and `verify` are for whoever publishes it. Exit status:
0; 1 if `status` finds none in force, or if the last question to the source failed; 2 if it failed, and then nothing has
changed.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..model.errors import ConfigError, UserError, not_written
from .common import check_archive_name, show, show_line, working_directory
from .key_files import private_key, public_keys, read
from .options import Parser
from .progress import waiting

if TYPE_CHECKING:
    from ..bundles.store import State
    from ..config.policy_in_force import InForce
    from ..model.policy_source import PolicySource

_DAYS: Final = 30.0
"""How long a policy counts if nothing else is said: a machine that is kept from newer ones stops after that."""

_DAY: Final = 86_400.0  # seconds


def main(arguments: Sequence[str]) -> int:
    """Do what the subverb says. Returns the exit status."""
    subverbs = {
        "status": _status,
        "update": _update,
        "rollback": _rollback,
        "resume": _resume,
        "sign": _sign,
        "pack": _pack,
        "keys": _keys,
        "verify": _verify,
    }
    return build_parser().run_subverb(arguments, subverbs, subverb_parsers())


def build_parser() -> Parser:
    """The parser of the verb alone, for its help."""
    return Parser(
        "policy",
        "Show, fetch or go back from the signed policy of this machine; or make one. See also: policy status, policy "
        "update, policy rollback, policy resume, policy sign, policy pack, policy keys, policy verify.",
        rest="status|update|rollback|resume|sign|pack|keys|verify",
        subverbs=subverb_parsers,
    )


def subverb_parsers() -> dict[str, Parser]:
    """The parsers of the command lines after the subverbs."""
    status = Parser("policy status", "Show which signed policy is in force, since when, and what its source said last.")
    status.add_common("--json")
    update = Parser("policy update", "Ask the source now, and take what is new if it is signed and works here.")
    update.add_argument("--quiet", action="store_true", help="print nothing if there is nothing new")
    rollback = Parser(
        "policy rollback",
        "Go back to an older policy that is still there. It stays until a newer one than all before comes.",
    )
    rollback.add_argument("version", metavar="VERSION", type=int, nargs="?", help="which one (default: the one before)")
    resume = Parser("policy resume", "End a rollback: the newest policy that was taken is in force again.")
    for parser in (status, update, rollback, resume):
        parser.add_argument(
            "--config", metavar="FILE", help="a gateway's configuration (default: the administrator's managed.toml)"
        )
    sign = Parser("policy sign", "Write manifest.json and its signature into the folder of a policy.")
    pack = Parser("policy pack", "Sign the folder of a policy as `policy sign`, and write all of it into one file.")
    keys = Parser("policy keys", "Name the keys that may sign from now on, in the folder of a policy.")
    for parser in (sign, pack, keys):
        parser.add_argument("folder", metavar="DIR", help="the folder with policy.toml and the hooks")
        parser.add_argument(
            "--key",
            metavar="FILE",
            required=parser is not pack,
            help="the private Ed25519 key" + " (default: the folder is signed already)" * (parser is pack),
        )
    for parser in (sign, pack):
        parser.add_argument("--version", metavar="N", type=int, help="its version (default: one more than the last)")
        parser.add_argument(
            "--days", metavar="N", type=float, default=_DAYS, help=f"days until it expires (default: {_DAYS:g})"
        )
        parser.add_argument(
            "--ring", metavar="NAME", action="append", help="a ring it is for; may be given several times (stable)"
        )
    pack.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write, such as stable.tar.gz")
    keys.add_argument("public", metavar="FILE", nargs="+", help="files with public keys that count from now on")
    verify = Parser("policy verify", "Check a bundle, or the folder of one, as a machine that fetches it would.")
    verify.add_argument("bundle", metavar="BUNDLE|DIR", help="the file that pack has written, or a signed folder")
    verify.add_argument("--keys", metavar="FILE", required=True, help="a file with the administrator's public keys")
    verify.add_argument("--ring", metavar="NAME", help="the ring that it must be for (default: any)")
    return {
        "status": status,
        "update": update,
        "rollback": rollback,
        "resume": resume,
        "sign": sign,
        "pack": pack,
        "keys": keys,
        "verify": verify,
    }


# --- for the machine that uses a policy ---


def _source(options: Namespace) -> PolicySource:
    """The table `[policy]` of the gateway's file, or of the administrator's. Raises UserError."""
    from ..config.load import MANAGED_FOLDER, managed_layers
    from ..config.policy_in_force import MANAGED_STATE, with_folder

    if options.config is not None:
        from ..config.gateway import policy_of_gateway

        policy = policy_of_gateway(options.config, os.environ, working_directory())
        where = options.config
    else:
        named = [layer.policy for layer in managed_layers(os.environ) if layer.policy is not None]
        policy = with_folder(named[0], MANAGED_STATE) if named else None
        where = os.path.join(MANAGED_FOLDER, "managed.toml")
    if policy is None:
        hint = "docs/policy-bundles.md has one; --config FILE names the file of a gateway"
        raise ConfigError(where, "names no policy: there is no table [policy]", hint)
    return policy


def _own_source(options: Namespace, changes: str = "") -> tuple[PolicySource, str]:
    """The table `[policy]`, and the name of who has started this, which then has the rights of the folder's owner.

    `changes` is the verb that changes something. Raises UserError for who may not do that.
    """
    policy = _source(options)
    if options.config is not None:
        return policy, _as_owner(policy.folder)
    if changes and os.geteuid() != 0:
        raise UserError("only root changes the policy of this machine", f"as root: hookproxy policy {changes}")
    from ..trust.managed_files import resolved

    with suppress(FileNotFoundError), resolved(policy.folder):  # nobody else can put something else in its place
        pass
    return policy, _name_of(os.getuid())


def _try(options: Namespace) -> Callable[[str], None]:
    """Loads the configuration with the policy in a folder, and checks its hooks; raises UserError."""
    from ..checks import signed_policy

    cwd = working_directory()

    def try_for_gateway(folder: str) -> None:
        from ..config.gateway import load_gateway
        from ..processes import service

        for server in load_gateway(options.config, os.environ, cwd, folder).servers.values():
            signed_policy.check(server.loaded, folder, service.environment(service.own_account(), {}))

    def try_as_managed(folder: str) -> None:
        from ..config.load import complete
        from ..trust.managed_files import environment
        from ..trust.sources import FileContext, Layer

        loaded = complete(Layer(""), FileContext(os.environ, cwd), candidate=folder)
        signed_policy.check(loaded, folder, environment(os.environ))

    return try_as_managed if options.config is None else try_for_gateway


def _update(options: Namespace) -> int:
    import anyio

    from ..bundles.update import refresh

    policy, _ = _own_source(options, changes="update")
    with waiting("the source of the policy"):
        taken = anyio.run(refresh, policy, _try(options), os.environ)
    if taken is not None:
        show_line(f"version {taken.version} of {taken.ring} is in force, until {taken.expires}")
    elif not options.quiet:
        show_line("there is nothing new")
    return 0


def _as_owner(folder: str) -> str:
    """As root, become the account that fetches a gateway's policy: among its files root could be led elsewhere.

    Returns the name of who has started this. Raises UserError; also if a third account could choose the folder, and so
    as whom this goes on.
    """
    import pwd

    from ..trust.managed_files import Ownership, resolved

    started_by = _name_of(os.getuid())
    try:
        owner = os.stat(folder).st_uid
        if os.geteuid() == 0:
            with resolved(folder, Ownership(frozenset({0, owner}), _name_of(owner), "signed policies", True)):
                pass
    except OSError as error:
        hint = "the gateway makes it when it starts"
        raise ConfigError(folder, f"cannot be used: {error.strerror}", hint) from None
    if owner == os.geteuid():
        return started_by
    if os.geteuid() != 0:
        raise ConfigError(folder, f"belongs to {_name_of(owner)}, who fetches the policy", "do this as root")
    try:
        account = pwd.getpwuid(owner)
    except KeyError:
        raise ConfigError(folder, f"belongs to user {owner}, who has no name", f"chown it: {folder}") from None
    os.initgroups(account.pw_name, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(owner)
    if not os.access(os.__file__, os.R_OK):  # what is imported later could not be found
        hint = f"start the hookproxy that {account.pw_name} starts, with its full path"
        raise ConfigError(os.__file__, f"cannot be read by {account.pw_name}, as whom this goes on", hint)
    return started_by


def _name_of(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _rollback(options: Namespace) -> int:
    from ..bundles.update import roll_back

    policy, by = _own_source(options, changes="rollback")
    before, older = roll_back(policy, options.version, by, _try(options))
    show_line(f"version {older.version} of {older.ring} is in force, and no longer version {before.version}")
    show_line("it stays until a newer version comes, or until: hookproxy policy resume")
    return 0


def _resume(options: Namespace) -> int:
    from ..bundles.update import resume

    policy, by = _own_source(options, changes="resume")
    newest = resume(policy, by, _try(options))
    show_line("nothing was rolled back" if newest is None else f"version {newest.version} is in force again")
    return 0


def _status(options: Namespace) -> int:
    from ..bundles.store import Store

    policy, _ = _own_source(options)
    state, found = Store(policy.folder).state(), _found(policy, options)
    if options.json:
        import msgspec.json

        show(msgspec.json.format(msgspec.json.encode(_as_json(policy, state, found)), indent=2).decode() + "\n")
    else:
        for name, text in _lines(policy, state, found):
            show_line(f"{name.ljust(10)}{text}")
    return int(found.bundle is None or bool(state.failure))


def _found(policy: PolicySource, options: Namespace) -> InForce:
    """What is in force, as the next start would find it."""
    from ..config.load import policy_for_runs
    from ..config.policy_in_force import in_force, root_owned

    if options.config is None:
        return in_force(policy, root_owned(policy_for_runs, os.environ))
    from ..config.gateway import policy_in_force_at_gateway

    return policy_in_force_at_gateway(policy)


def _lines(policy: PolicySource, state: State, found: InForce) -> Sequence[tuple[str, str]]:
    from ..bundles import sources

    lines = [("source", sources.parse(policy.source, policy.ring).shown), ("ring", policy.ring)]
    if found.bundle is not None and state.current is not None:
        current = state.current
        lines += [
            ("version", str(current.version)),
            ("digest", current.digest),
            ("signed by", current.signed_by),
            ("taken", _shown(current.taken)),
            ("expires", current.expires),
        ]
    else:
        lines.append(("in force", f"nothing may pass: {found.closed}" if found.closed else "only the local files"))
    lines += [("note", note) for note in found.notes]
    if state.pinned is not None:
        until = f"until a newer version than {state.pinned.until} comes"
        lines.append(("rollback", f"by {state.pinned.by}, {_shown(state.pinned.at)}, {until}"))
    others = [taken for taken in state.kept if taken != state.current and taken.ring == policy.ring]
    if others:
        lines.append(("kept", ", ".join(f"version {taken.version}" for taken in others)))
    lines.append(("asked", _shown(state.checked) if state.checked else "never"))
    if state.failure:
        lines.append(("failure", f"{state.failure} ({state.failures} in a row)"))
    return lines


def _as_json(policy: PolicySource, state: State, found: InForce) -> Mapping[str, object]:
    bundle = found.bundle
    shown = ("version", "ring", "digest", "expires")
    return {
        "source": policy.source,
        "ring": policy.ring,
        "folder": policy.folder,
        "in_force": None if bundle is None else {name: getattr(bundle, name) for name in shown},
        "closed": found.closed or None,
        "current": state.current,
        "kept": state.kept,
        "rollback": state.pinned,
        "asked": state.checked or None,
        "failure": state.failure or None,
        "failures": state.failures,
    }


def _shown(seconds: float) -> str:
    from ..bundles.manifest import formatted_time

    return formatted_time(seconds)


# --- for whoever publishes a policy ---


def _sign(options: Namespace) -> int:
    from ..archives.folder import files_of

    files, executable = files_of(options.folder)
    signed = _signed(options, files, executable)
    _write(options.folder, signed)
    return 0


def _pack(options: Namespace) -> int:
    from ..archives import archive
    from ..archives.folder import files_of
    from ..files.replace import replace_file

    check_archive_name(options.output)
    files, executable = files_of(options.folder)
    if options.key is not None:
        signed = _signed(options, files, executable)
        _write(options.folder, signed)
        files |= signed
    try:
        data = archive.write(files, executable)
    except ValueError as problem:
        raise UserError(f"{options.folder}: {problem}", "leave out what is not part of the policy") from None
    try:
        replace_file(options.output, data, mode=0o644)
    except OSError as error:
        raise not_written(options.output, error) from None
    show_line(f"wrote {options.output}: {len(files)} files, {len(data)} bytes")
    return 0


def _signed(options: Namespace, files: Mapping[str, bytes], executable: frozenset[str]) -> dict[str, bytes]:
    """Manifest and signature of these files, verified as whoever gets them will. Raises UserError."""
    from ..archives.listed import Refused
    from ..bundles import make, manifest

    key = private_key(options.key)
    version = options.version or make.last_version(files) + 1
    expires = manifest.formatted_time(time.time() + options.days * _DAY)
    rings = options.ring or ["stable"]
    signed = make.signed(make.made_manifest(files, executable, version, expires, rings), key)
    try:
        # under this key alone: what was signed with a key that a statement has dropped is refused
        manifest.verify({**files, **signed}, [key.public])
    except Refused as problem:
        raise UserError(f"{options.folder}: nobody would take it: {problem}", "correct that, and sign again") from None
    show_line(f"version {version} for {', '.join(rings)}, until {expires}, signed with {key.public.fingerprint}")
    return signed


def _keys(options: Namespace) -> int:
    from ..archives.folder import files_of
    from ..bundles.make import key_statement

    files, _ = files_of(options.folder)
    public = [key for path in options.public for key in public_keys(path)]
    statement = key_statement(files, public, private_key(options.key))
    _write(options.folder, statement)
    for key in public:
        show_line(f"{key.fingerprint} counts from now on{f' ({key.comment})' if key.comment else ''}")
    show_line("sign the policy anew with one of them")
    return 0


def _verify(options: Namespace) -> int:
    from ..archives import archive
    from ..archives.folder import files_of
    from ..archives.listed import Refused
    from ..bundles import manifest

    if os.path.isdir(options.bundle):
        files, _ = files_of(options.bundle)
    else:
        try:
            files = archive.read(read(options.bundle, archive.MOST_BYTES))
        except ValueError as problem:
            raise UserError(f"{options.bundle}: {problem}", "hookproxy policy pack makes one") from None
    try:
        verified = manifest.verify(files, public_keys(options.keys))
        ring = options.ring or verified.manifest.rings[0]
        manifest.check_usable(verified, ring, 1, time.time())
    except Refused as problem:
        raise UserError(f"{options.bundle}: {problem}", "no machine with these keys takes it") from None
    of = verified.manifest
    show_line(f"version {of.version} for {', '.join(of.rings)}, until {of.expires}, {len(of.files)} files")
    show_line(f"signed with {verified.signed_by.fingerprint}")
    return 0


def _write(folder: str, files: Mapping[str, bytes]) -> None:
    from ..files.replace import replace_file

    for name, content in files.items():
        path = os.path.join(folder, name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            replace_file(path, content, mode=0o644)
        except OSError as error:
            raise not_written(path, error) from None
