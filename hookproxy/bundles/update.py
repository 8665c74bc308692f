"""The way of a bundle from its source into force: fetched, verified, written, tried, then named as the one in force.

Whatever fails before the last step changes nothing but what is remembered of the failure: the last good one stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import anyio.from_thread
import anyio.to_thread
from msgspec.structs import replace

from ..archives.listed import Refused
from ..model.errors import ConfigError, UserError, file_hint, not_installed, not_written
from ..model.policy_source import PolicySource
from ..signing.keys import PublicKey, parse_public
from . import manifest, sources
from .manifest import Verified
from .store import UNKNOWN, Pin, State, Store, Taken, verified_bundle

if TYPE_CHECKING:
    import ssl

_FETCH_SECONDS: Final = 120.0
"""For all requests of one fetch over HTTP: a bundle has some kilobytes, and a registry is asked four times."""

_LARGEST_CREDENTIAL: Final = 16 * 1024  # bytes: tokens have a few thousand

_BELIEVED_SECONDS: Final = 3600.0
"""That a web server is believed that there is nothing new. Whoever could deliver once may have given the bundle the
mark that the next version will have, and the server then says of that one that it is known."""

Try = Callable[[str], None]
"""Loads the configuration with the bundle in this folder in force, and raises UserError if it cannot be used."""


async def refresh(policy: PolicySource, try_bundle: Try, environ: Mapping[str, str]) -> Taken | None:
    """Ask the source, and take what is new. None: there is nothing new. Raises UserError: then the last one stays."""
    store = Store(policy.folder)
    source = sources.parse(policy.source, policy.ring)
    state = store.state()
    try:
        mark = await anyio.to_thread.run_sync(_mark, policy, store, source, state)
        fetched = await _fetch(policy, source, mark, environ)
        return await anyio.to_thread.run_sync(partial(_take, policy, store, source, fetched, try_bundle))
    except sources.NotFetched as problem:
        failed = UserError(f"{source.shown}: {problem}", "look at the source; the last good policy stays in force")
    except UserError as problem:
        failed = problem
    except TimeoutError:
        failed = UserError(f"{source.shown} took more than {_FETCH_SECONDS:g} s", "look at the network")
    except OSError as problem:
        why = problem.strerror or str(problem) or type(problem).__name__
        why = why.replace(" (--ca FILE trusts one of your own)", " (policy.ca names a file with one of your own)")
        hint = file_hint(str(problem.filename), problem) if problem.filename else "look at the network"
        failed = UserError(f"{source.shown}: {why}", f"{hint}; the last good policy stays in force")
    await anyio.to_thread.run_sync(partial(_note_failure, store, failed.message))
    raise failed


def _mark(policy: PolicySource, store: Store, source: sources.Source, state: State) -> str:
    """The mark of what was fetched last; none if that could not be used as it is, and must come again."""
    current = state.current
    if not state.mark or state.mark_of != _mark_of(policy, source) or current is None or current.ring != policy.ring:
        return ""
    if source.kind == "https" and not 0 <= time.time() - state.came < _BELIEVED_SECONDS:
        return ""
    return state.mark if _is_whole(store, current.digest, keys_of(policy)) else ""


def _mark_of(policy: PolicySource, source: sources.Source) -> str:
    """Under other keys, what was refused before may be taken."""
    return f"{source.shown} {manifest.keys_digest(keys_of(policy))}"


def keys_of(policy: PolicySource) -> Sequence[PublicKey]:
    """The administrator's keys, which were checked when they were read."""
    return [parse_public(line) for line in policy.keys]


# --- fetching ---


async def _fetch(
    policy: PolicySource, source: sources.Source, mark: str, environ: Mapping[str, str]
) -> sources.Fetched:
    if source.kind == "git":
        return await anyio.to_thread.run_sync(_fetch_by_git, policy, source, mark, environ)
    from ..archives import archive
    from ..network.get import getter
    from . import over_http

    credential = await anyio.to_thread.run_sync(_credential, policy.credential)
    get = getter(environ, partial(_tls, policy.ca), archive.MOST_BYTES)
    with anyio.fail_after(_FETCH_SECONDS):
        return await over_http.fetch(source, get, credential, mark)


def _fetch_by_git(
    policy: PolicySource, source: sources.Source, mark: str, environ: Mapping[str, str]
) -> sources.Fetched:
    from . import over_git

    is_ssh = source.url.startswith("ssh:")
    credential = "" if is_ssh else _credential(policy.credential)
    access = over_git.Access(environ, credential, policy.credential if is_ssh else "", policy.ca)
    with Store(policy.folder).locked():  # it makes the folder
        pass
    return over_git.fetch(source, access, policy.folder, mark, anyio.from_thread.check_cancelled)


def _tls(ca: str) -> ssl.SSLContext:
    from ..network.connect import tls_context

    try:
        return tls_context(ca or None, None, None)
    except UserError as problem:
        raise UserError(problem.message.replace("--ca ", "policy.ca: "), problem.hint) from None


def _credential(path: str) -> str:
    """The content of the file, in one line. Raises UserError."""
    if not path:
        return ""
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST_CREDENTIAL).decode("ascii").strip()
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", "policy.credential names it") from None
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable() or " " in text:
        raise ConfigError(path, "is not a token or user:password in one line", "policy.credential names it")
    return text


# --- taking ---


def _take(
    policy: PolicySource, store: Store, source: sources.Source, fetched: sources.Fetched, try_bundle: Try
) -> Taken | None:
    with store.locked():
        state = store.state()
        checked = replace(state, checked=time.time(), failure="", failures=0)
        if fetched.files is None:
            store.write(checked)
            return None
        checked = replace(checked, came=checked.checked)
        keys = keys_of(policy)
        try:
            verified = _verify(fetched.files, keys)
            manifest.check_usable(verified, policy.ring, policy.min_version, time.time())
            is_newer = manifest.is_newer(verified, state.memory(policy.ring, manifest.keys_digest(keys)))
        except Refused as problem:
            hint = "the last good policy stays in force; ask whoever publishes the policy"
            raise UserError(f"{source.shown}: refused: {problem}", hint) from None
        checked = replace(checked, mark=fetched.mark, mark_of=_mark_of(policy, source))
        stays = state.is_pinned_in(policy.ring) or _is_in_force(store, state, verified, policy.ring, keys)
        if not is_newer and stays:
            store.write(checked)
            return None
        path = store.unpack(verified, fetched.files)
        try:
            try_bundle(path)
        except UserError as problem:
            store.forget_old(state)
            why = f"{source.shown}: version {verified.manifest.version} is refused, because it does not work here"
            raise UserError(f"{why}: {problem.message}", problem.hint) from None
        taken = _as_taken(verified, policy.ring)
        store.write(store.forget_old(_with(checked, taken, verified, keys)))
        store.record("taken", taken, source.shown)
        return taken


def _verify(files: Mapping[str, bytes], keys: Sequence[PublicKey]) -> Verified:
    try:
        return manifest.verify(files, keys)
    except ModuleNotFoundError as missing:
        raise without_cryptography(missing) from None


def without_cryptography(missing: ModuleNotFoundError) -> Exception:
    """What to raise if a module is missing with which signatures are verified; another error stays as it is."""
    is_ours = (missing.name or "").partition(".")[0] == "cryptography"
    return not_installed("[policy]", "cryptography", "gateway") if is_ours else missing


def _is_in_force(store: Store, state: State, verified: Verified, ring: str, keys: Sequence[PublicKey]) -> bool:
    """Whether this very bundle is in force in this ring, and is still as it was taken."""
    current = state.current
    is_named = current is not None and (current.digest, current.ring) == (verified.digest, ring)
    return is_named and _is_whole(store, verified.digest, keys)


def _is_whole(store: Store, digest: str, keys: Sequence[PublicKey]) -> bool:
    """Whether a bundle is still there as it was taken."""
    try:
        verified_bundle(store.path_of(digest), read_file, keys)
    except (OSError, UserError, Refused):
        return False
    return True


def read_file(path: str) -> bytes:
    """The content of a file. Raises OSError."""
    with open(path, "rb") as file:
        return file.read()


def _as_taken(verified: Verified, ring: str) -> Taken:
    of = verified.manifest
    return Taken(verified.digest, of.version, ring, of.expires, time.time(), verified.signed_by.fingerprint)


def _with(state: State, taken: Taken, verified: Verified, keys: Sequence[PublicKey]) -> State:
    digest = manifest.keys_digest(keys)
    chains = state.highest_chain if digest == state.keys_of else dict.fromkeys(state.highest, UNKNOWN)
    return replace(
        state,
        current=taken,
        kept=(taken, *(other for other in state.kept if other.digest != taken.digest)),
        highest={**state.highest, taken.ring: (taken.version, taken.digest)},
        highest_chain={**chains, taken.ring: len(verified.keys_chain)},
        keys_of=digest,
        keys_chain=verified.keys_chain,
        pinned=None,
    )


def _note_failure(store: Store, why: str) -> None:
    """Remember that nothing came. Whatever prevents that is less than the failure itself."""
    try:
        with store.locked():
            state = store.state()
            store.write(replace(state, checked=time.time(), failure=why, failures=state.failures + 1))
    except (OSError, UserError):
        pass


# --- the administrator's explicit acts ---


def roll_back(policy: PolicySource, version: int | None, by: str, try_bundle: Try) -> tuple[Taken, Taken]:
    """Put an older version into force that is still there: this one, or the one before. Returns the former one, and it.

    It stays until a newer version than all that were taken comes, or until `resume`. Raises UserError.
    """
    store = Store(policy.folder)
    with store.locked():
        state = store.state()
        if state.current is None:
            raise UserError("no policy was taken yet", "hookproxy policy update fetches it")
        older = _older(state, state.current, policy.ring, version)
        highest = state.highest.get(policy.ring, (state.current.version, ""))[0]
        _try_kept(policy, store, older, try_bundle)
        _put(store, replace(state, current=older, pinned=Pin(highest, by, time.time())), "rolled back", older, by)
        return state.current, older


def _older(state: State, current: Taken, ring: str, version: int | None) -> Taken:
    there = [taken for taken in state.kept if taken.ring == ring and taken.version < current.version]
    wanted = [taken for taken in there if version in (None, taken.version)]
    if wanted:
        return max(wanted, key=lambda taken: taken.version)
    what = "no older version" if version is None else f"no version {version} older than {current.version}"
    shown = ", ".join(str(taken.version) for taken in there)
    hint = f"these are there: {shown}" if shown else "the last five are kept; publish the older policy as a new version"
    raise UserError(f"there is {what} in {ring}", hint)


def resume(policy: PolicySource, by: str, try_bundle: Try) -> Taken | None:
    """End a rollback: the newest version that was taken is in force again. None: there was none. Raises UserError."""
    store = Store(policy.folder)
    with store.locked():
        state = store.state()
        if state.pinned is None:
            return None
        of_ring = [taken for taken in state.kept if taken.ring == policy.ring]
        if not of_ring:
            raise UserError(f"no version of {policy.ring} is there", "hookproxy policy update fetches it")
        newest = max(of_ring, key=lambda taken: taken.version)
        _try_kept(policy, store, newest, try_bundle)
        _put(store, replace(state, current=newest, pinned=None), "resumed", newest, by)
        return newest


def _put(store: Store, state: State, what: str, taken: Taken, by: str) -> None:
    """Put what an administrator wants into force, once it is in the history. Raises UserError: nothing has changed."""
    try:
        store.record(what, taken, by)
        store.write(state)
    except OSError as error:
        raise not_written(error.filename or store.folder, error) from None


def _try_kept(policy: PolicySource, store: Store, taken: Taken, try_bundle: Try) -> None:
    """Raise UserError unless a bundle that is kept can be put into force."""
    path = store.path_of(taken.digest)
    try:
        verified, _ = verified_bundle(path, read_file, keys_of(policy))
        manifest.check_usable(verified, policy.ring, policy.min_version, time.time())
    except Refused as problem:
        raise UserError(f"{path}: {problem}", "publish that policy as a new version") from None
    except OSError as error:
        hint = "publish that policy as a new version"
        raise UserError(f"version {taken.version} cannot be read any more: {error.strerror}", hint) from None
    try_bundle(path)
