"""Fetches a bundle from a git repository, by the installed git: one commit, and nothing of it is checked out.

The repository is a stranger's. So git gets no configuration but what stands here, runs no hooks and no helpers, speaks
only the protocol of the address, and may write files up to a limit: everything that it prints goes into a file, too.
What is read is the list of a tree, and then those objects that a bundle may have: no filter and no attribute of the
repository is applied to them.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from ..archives import archive, names
from ..model.errors import printable
from ..processes.platforms import SYSTEM_PATH, UTF_8
from ..processes.short_command import output_of
from .over_http import authorization
from .sources import Fetched, NotFetched, Source
from .store import FETCHING

_SECONDS: Final = 60.0  # for each command of git: a bundle has some kilobytes
_FILE_BLOCKS: Final = 4 * archive.MOST_BYTES // 512
"""The most that git may write into one file, in blocks as `ulimit -f` counts them: objects, or what it prints."""

_MEMORY_KIB: Final = 512 * 1024
"""The most memory of a process of git, as `ulimit -v` counts it: git reads some objects whole, and one of gigabytes may
take a few kilobytes on its way here. Some systems (macOS) have no such limit."""

_SHOWN: Final = 500  # bytes of what git says when it fails; the first line says why
_NO_BRANCH: Final = "there is no such branch"  # it says nothing then
_PLAIN: Final = {"100644": False, "100755": True}
_PROXIES: Final = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")
_OPTIONS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "credential.helper=",
    "http.followRedirects=false",
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "transfer.bundleURI=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.version=2",
    "pack.threads=1",  # each of them reserves memory
    "core.bigFileThreshold=1m",
)


class Access(Struct, frozen=True):
    """What git needs beside the address."""

    environ: Mapping[str, str]
    credential: str = ""
    """A token or `user:password`, for https."""
    key_file: str = ""
    """The private key, for ssh."""
    ca: str = ""


def _go_on() -> None:
    """Nobody wants it to end."""


def fetch(source: Source, access: Access, folder: str, mark: str, check: Callable[[], None] = _go_on) -> Fetched:
    """The files of the branch; `mark` is the commit that was fetched last. `folder` is for what git writes.

    Blocks; if `check` raises something, git is killed. Raises NotFetched, OSError.
    """
    with tempfile.TemporaryDirectory(prefix=FETCHING, dir=folder) as work:
        git = _Git(work, source, access, check)
        listed = git.output("ls-remote", "--exit-code", "--", source.url, source.reference)
        if mark and listed.split(b"\t")[0] == mark.encode():
            return Fetched(None, mark)
        git.output("init", "--quiet", "--bare", "--template=", ".")
        git.output(
            *("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance"),
            *("--", source.url, f"+{source.reference}:refs/heads/policy"),
        )
        commit = git.output("rev-parse", "--verify", "refs/heads/policy^{commit}").decode().strip()
        entries = list(_tree(git.output("ls-tree", "-r", "-z", "-l", "--full-tree", "refs/heads/policy")))
        return Fetched(_contents(git, entries), commit)


def _tree(listing: bytes) -> Iterator[tuple[str, str, int]]:
    """Name, object and size of each file, without those that have a dot at the beginning of their path's parts.

    Raises NotFetched for what is not a plain file, and for too many.
    """
    total = 0
    for number, entry in enumerate(filter(None, listing.split(b"\0"))):
        head, _, raw = entry.partition(b"\t")
        name = raw.decode("latin-1")
        if any(part.startswith(".") for part in name.split("/")):  # .gitignore, .github
            continue
        mode, kind, identifier, size = head.decode().split()
        if kind != "blob" or mode not in _PLAIN:
            raise NotFetched(f"{printable(name)} is not a plain file, but a link or a submodule")
        total += int(size)
        if total > archive.MOST_BYTES or number >= archive.MOST_FILES:
            raise NotFetched(f"it has more than {archive.MOST_BYTES} bytes, or more than {archive.MOST_FILES} files")
        yield name, identifier, int(size)


def _contents(git: _Git, entries: Sequence[tuple[str, str, int]]) -> Mapping[str, bytes]:
    try:
        names.check_all(name for name, _, _ in entries)
    except names.BadName as problem:
        raise NotFetched(f"what is there is not a bundle: {problem}") from None
    batch = git.output("cat-file", "--batch", stdin="".join(f"{identifier}\n" for _, identifier, _ in entries).encode())
    files, at = {}, 0
    for name, identifier, size in entries:
        head = f"{identifier} blob {size}\n".encode()
        if not batch.startswith(head, at):
            raise NotFetched(f"git has not printed {name}")
        at += len(head) + size + 1
        files[name] = batch[at - size - 1 : at - 1]
    return files


class _Git:
    """Runs git in one folder, for one repository."""

    def __init__(self, folder: str, source: Source, access: Access, check: Callable[[], None]) -> None:
        self._folder = folder
        self._check = check
        self._env = _environment(source, access)
        self._protocol = urlsplit(source.url).scheme

    def output(self, *words: str, stdin: bytes = b"") -> bytes:
        """What git prints. Raises NotFetched, OSError."""
        options = [*_OPTIONS, "protocol.allow=never", f"protocol.{self._protocol}.allow=always"]
        argv = ["git", *(word for option in options for word in ("-c", option)), *words]
        limits = f"ulimit -v {_MEMORY_KIB} 2>/dev/null; ulimit -f {_FILE_BLOCKS}"
        script = f'{limits}; exec "$@" >.printed 2>.failed'
        ended = output_of(["/bin/sh", "-c", script, "sh", *argv], stdin, self._folder, self._env, _SECONDS, self._check)
        if ended is None:
            raise NotFetched(f"git {words[0]} has taken more than {_SECONDS:g} s")
        if ended.status:
            said = self._read(".failed")[:_SHOWN].decode("utf-8", "replace").splitlines()
            why = next((line for line in said if line.strip() and not line.startswith("warning: ")), _NO_BRANCH)
            raise NotFetched(f"git {words[0]} has failed: {printable(why.strip())}")
        return self._read(".printed")

    def _read(self, name: str) -> bytes:
        with open(os.path.join(self._folder, name), "rb") as file:
            return file.read()


def _environment(source: Source, access: Access) -> dict[str, str]:
    parts = urlsplit(source.url)
    ssh = ["ssh", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oForwardAgent=no", "-oClearAllForwardings=yes"]
    if access.key_file:
        ssh += ["-i", access.key_file, "-oIdentitiesOnly=yes"]
    env = {
        **{name: access.environ[name] for name in _PROXIES if name in access.environ},
        **UTF_8,
        "PATH": SYSTEM_PATH,
        "HOME": "/nonexistent",  # neither .gitconfig nor .netrc
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "GIT_ALLOW_PROTOCOL": parts.scheme,
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_SSH_COMMAND": shlex.join(ssh),
        "GIT_SSH_VARIANT": "ssh",
    }
    if access.ca:
        env["GIT_SSL_CAINFO"] = access.ca
    if access.credential and parts.scheme in ("https", "http"):  # not in the command line, which everybody can see
        env |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: {authorization(access.credential)}",
        }
    return env
