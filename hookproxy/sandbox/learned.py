"""From what a server used while it was watched to the table that its sandbox needs. Pure.

Files become folders where several lie in one, a Git repository is one thing, and a folder that the command line names
is taken as a whole. What every server has anyway is left away: the system, its own program, files for a while.

Law: nothing is proposed that holds what belongs to many: the root folder, a home folder and the hidden files in it, the
folders of the system, and what no server may see. It is listed with the reason instead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from ..model.sizes import shown_size
from ..processes.watched_calls import Access, What
from .folders import SYSTEM, is_common, is_within, overlaps, within_any

_READS: Final[Mapping[What, str]] = {"read": "read", "list": "listed", "run": "run"}
_WRITES: Final[Mapping[What, str]] = {"write": "written", "make": "made", "remove": "removed"}
_NETWORK: Final[Mapping[What, str]] = {"connect": "it connects to", "listen": "it listens at"}

_SHOWN: Final = 3  # examples in a comment: enough to recognise what it is
_SIBLINGS: Final = 3  # entries in one folder become the folder: two may be two things, three are a collection
_FEWEST_STEPS: Final = 2  # of a path that is made of others: `/data` alone may be a whole disk
_MEMORY_STEP: Final = 512 * 1024**2  # bytes: nobody needs finer steps, and Node alone takes a fourth of it
_MEMORY_FACTOR: Final = 2  # a long session and a large result need more than what was watched
_TASKS_FACTOR: Final = 4  # processes come and go; the limit is there for a fork bomb, which needs thousands
_FEWEST_TASKS: Final = 64  # a shell, a runtime with its threads, and git

_WARNING: Final = "WARNING: "

_KERNEL: Final = ("/proc", "/sys", "/dev")
_SECRET_FOLDERS: Final = ("/etc/ssl/private", "/etc/ssh")
_SECRET_NAMES: Final = frozenset(
    (
        *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pgpass"),
        *(".password-store", ".npmrc", ".pypirc", ".mozilla", "gcloud", "gh", "google-chrome", "keyrings", "rclone"),
        *("shadow", "gshadow", "sudoers", "sudoers.d", "docker.sock", "containerd.sock", "podman.sock"),
    )
)
"""Names of files and folders that hold credentials, or whose reader has the rights of somebody else."""


class Around(Struct, frozen=True):
    """What lies around the server on this machine. Paths are real and absolute."""

    homes: Sequence[str] = ()
    """Home folders of people."""
    covered: Sequence[str] = ()
    """What its sandbox shows in any case: the system, and its own program."""
    protected: Mapping[str, str] = {}
    """What no server may see, each with what it is."""
    named: Sequence[str] = ()
    """Folders that its command line names."""
    temporary: Sequence[str] = ()
    """Folders for files that are there for a while."""


class Watched(Struct, frozen=True):
    """What was seen."""

    accesses: Mapping[Access, int]
    """In the order of the first use, each with how often it was."""
    memory: int = 0
    """Bytes: the most data that its processes had together."""
    tasks: int = 0
    """The most processes and threads at once."""
    variables: Mapping[str, str] = {}
    """Variables that are set, with the file of its program that names each."""


class Proposal(Struct):
    """A table, each entry with its reason."""

    read: dict[str, str] = field(default_factory=dict)
    write: dict[str, str] = field(default_factory=dict)
    network: bool = False
    network_why: str = "it opened no socket of the internet"
    env: dict[str, str] = field(default_factory=dict)
    memory: int = _MEMORY_STEP
    memory_why: str = ""
    processes: int = _FEWEST_TASKS
    processes_why: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    """What it used and is not proposed, each with the reason."""


def propose(watched: Watched, around: Around) -> Proposal:
    """The table for a server that uses what was seen."""
    proposal = Proposal(env=dict(watched.variables))
    kept = {True: dict[str, list[Access]](), False: dict[str, list[Access]]()}
    made = {access.path for access in watched.accesses if access.what == "make"}
    for access in watched.accesses:
        if access.what not in _READS and access.what not in _WRITES:
            continue
        if not _is_of_interest(access, made, around):
            continue
        if why := _why_left_out(access, around):
            shown = (
                access.path if why.startswith(_WARNING) else _hidden_at_home(access.path, around.homes) or access.path
            )
            proposal.left_out.setdefault(shown, f"{_WRITES.get(access.what) or _READS[access.what]}: {why}")
            continue
        kept[access.what in _WRITES].setdefault(access.path, []).append(access)
    _add_named(proposal, kept, around)
    writes = _grouped(kept[True], around, writes=True)
    reads = _grouped(kept[False], around, writes=False)
    proposal.write |= {path: _counts(path, accesses) for path, accesses in writes.items()}
    proposal.read |= {
        path: _counts(path, accesses) for path, accesses in reads.items() if not within_any(path, proposal.write)
    }
    _add_network(proposal, watched.accesses)
    proposal.memory = max(_MEMORY_STEP, -(-watched.memory * _MEMORY_FACTOR // _MEMORY_STEP) * _MEMORY_STEP)
    proposal.memory_why = f"its processes had {shown_size(watched.memory)} of data together"
    proposal.processes = max(_FEWEST_TASKS, 1 << (watched.tasks * _TASKS_FACTOR).bit_length())
    proposal.processes_why = (
        f"it had {watched.tasks} processes and threads at once; leave it out under Landlock, where all of the "
        "account's count"
    )
    return proposal


def variables_named(names: Collection[str], files: Mapping[str, bytes]) -> dict[str, str]:
    """Those of the variables that one of these files names as a word, each with the file."""
    found: dict[str, str] = {}
    for path, content in files.items():
        for name in names:
            if name not in found and _has_word(content, os.fsencode(name)):
                found[name] = path
    return dict(sorted(found.items()))


def _has_word(content: bytes, word: bytes) -> bool:
    at = content.find(word)
    while at >= 0:
        around = content[max(at - 1, 0) : at] + content[at + len(word) : at + len(word) + 1]
        if not any(byte == 0x5F or bytes((byte,)).isalnum() for byte in around):
            return True
        at = content.find(word, at + 1)
    return False


# --- what counts ---


def _is_of_interest(access: Access, made: Collection[str], around: Around) -> bool:
    """Whether its sandbox would not have this in any case."""
    path = access.path
    if within_any(path, _KERNEL):
        return False
    if path in around.temporary or any(_first_below(path, folder) in made for folder in around.temporary):
        return False
    if access.what in _WRITES:
        return "__pycache__" not in path.split(os.sep)
    return not within_any(path, (*SYSTEM, *around.covered))


def _first_below(path: str, folder: str) -> str:
    """What lies directly in the folder, and is the path or contains it; empty: the path lies elsewhere."""
    if path == folder or not is_within(path, folder):
        return ""
    return os.path.join(folder, path[len(folder) :].lstrip(os.sep).partition(os.sep)[0])


def _hidden_at_home(path: str, homes: Sequence[str]) -> str:
    """The hidden file or folder of a home folder that contains the path; empty: none does."""
    tops = (_first_below(path, home) for home in homes)
    return next((top for top in tops if os.path.basename(top).startswith(".")), "")


def _why_left_out(access: Access, around: Around) -> str:  # one reason after another
    """Why a use is not proposed; empty: it is."""
    path, writes = access.path, access.what in _WRITES
    if own := next((what for file, what in around.protected.items() if is_within(path, file)), ""):
        return f"{_WARNING}this is {own}: no server may have it"
    if not _is_text(path):
        return "its name is not UTF-8, and cannot stand in a configuration"
    if _SECRET_NAMES.intersection(path.split(os.sep)) or within_any(path, _SECRET_FOLDERS):
        return f"{_WARNING}this may be a secret, or give the rights of somebody else"
    if _hidden_at_home(path, around.homes):
        return "a hidden file of a home folder: in the sandbox HOME is a folder of its own, which stays"
    if writes and within_any(path, (*SYSTEM, "/etc", "/boot")):
        return f"{_WARNING}it belongs to the system, which no server may write"
    if writes and within_any(path, around.covered):
        return "its own program, which it may not write"
    return _why_not_whole(access, around)


def _why_not_whole(access: Access, around: Around) -> str:
    """Why the folder that a use needs cannot be proposed; empty: it can, or none is needed."""
    folder = access.path if access.what == "list" else os.path.dirname(access.path)
    if not (access.what == "list" or _needs_folder(access)) or _may_be_whole(folder, around):
        return ""
    return f"{_WARNING}it would need the whole of {folder}: let it work in a folder of its own"


def _needs_folder(access: Access) -> bool:
    """Whether what was done changes the folder in which the path lies."""
    return access.what in ("make", "remove")


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _may_be_whole(folder: str, around: Around) -> bool:
    """Whether a folder may be an entry."""
    if is_common(folder, around.homes) or within_any(folder, (*_KERNEL, "/etc", "/boot")):
        return False
    return not any(overlaps(folder, own) for own in around.protected)


# --- files become folders ---


def _add_named(proposal: Proposal, kept: Mapping[bool, dict[str, list[Access]]], around: Around) -> None:
    """Take the folders that the command line names as a whole, with what was used in them."""
    for folder in around.named:
        if within_any(folder, (*SYSTEM, *around.covered)):
            continue
        used = {writes: [path for path in paths if is_within(path, folder)] for writes, paths in kept.items()}
        if not _may_be_whole(folder, around) or _why_left_out(Access("list", folder), around):
            proposal.left_out[folder] = (
                f"{_WARNING}its command line names it, and much else lies there: name what it needs"
            )
            continue
        uses = {writes: [kept[writes].pop(path) for path in paths] for writes, paths in used.items()}
        accesses = [access for writes in (True, False) for several in uses[writes] for access in several]
        reason = f"its command line names it; {_counts(folder, accesses)}" if accesses else "its command line names it"
        if uses[True]:
            proposal.write[folder] = reason
        else:
            proposal.read[folder] = f"{reason}; it wrote nothing there while it was watched"


def _grouped(paths: Mapping[str, list[Access]], around: Around, *, writes: bool) -> dict[str, list[Access]]:
    """The entries that these uses become."""
    folders = Counter(os.path.dirname(path) for path in paths)
    entries: dict[str, list[Access]] = {}
    for path, accesses in paths.items():
        entries.setdefault(_unit(path, accesses, folders, around), []).extend(accesses)
    while (larger := next(_mergers(entries, around), None)) is not None:
        inside = [path for path in entries if is_within(path, larger)]
        entries[larger] = [access for path in inside for access in entries.pop(path)]
    for path in sorted(entries, key=len):
        outer = next((other for other in entries if other != path and is_within(path, other)), None)
        if outer is not None:
            entries[outer].extend(entries.pop(path))
    return dict(sorted(entries.items()))


def _unit(path: str, accesses: Sequence[Access], folders: Mapping[str, int], around: Around) -> str:
    """The entry for one path: the smallest thing that it is a part of."""
    parts = path.split(os.sep)
    for name in (".git", "node_modules", "site-packages"):
        if name in parts[:-1]:
            whole = os.sep.join(parts[: parts.index(name) + 1])
            if _may_be_whole(whole, around):
                return whole
    folder = os.path.dirname(path)
    if any(map(_needs_folder, accesses)):
        return folder
    if any(access.what == "list" for access in accesses):
        return path
    return folder if folders[folder] > 1 and _may_be_whole(folder, around) else path


def _mergers(entries: Collection[str], around: Around) -> Iterator[str]:
    """Folders that several entries become."""
    parents = Counter(os.path.dirname(path) for path in entries)
    for parent, number in parents.items():
        is_repository = f"{parent}/.git" in entries and any(
            is_within(path, parent) and path != f"{parent}/.git" for path in entries
        )
        long_enough = parent.count(os.sep) >= _FEWEST_STEPS
        if (is_repository or (number >= _SIBLINGS and long_enough)) and _may_be_whole(parent, around):
            yield parent


# --- reasons ---


def _counts(entry: str, accesses: Iterable[Access]) -> str:
    """What was done in an entry, by whom, with examples."""
    done: dict[str, dict[str, None]] = {}
    programs: dict[str, None] = {}
    for access in accesses:
        verb = _WRITES.get(access.what) or _READS[access.what]
        done.setdefault(verb, {})[access.path] = None
        programs[access.program] = None
    counts = ", ".join(f"{len(paths)} {verb}" for verb, paths in done.items())
    examples = [path for paths in done.values() for path in paths if path != entry]
    shown = ", ".join(os.path.relpath(path, entry) for path in dict.fromkeys(examples[:_SHOWN]))
    by = f" by {', '.join(list(programs)[:_SHOWN])}" if any(programs) else ""
    return f"{counts}{by}" + (f", such as {shown}" if shown else "")


def _add_network(proposal: Proposal, accesses: Iterable[Access]) -> None:
    addresses: dict[str, None] = {}
    unseen: Counter[str] = Counter()
    for access in accesses:
        if access.what == "unseen":
            unseen[access.program] += 1
        elif access.what == "internet" and not proposal.network:
            proposal.network, proposal.network_why = True, "it opened a socket of the internet"
        elif access.what in _NETWORK and access.path.startswith("/"):
            secret = f"{_WARNING}" if _SECRET_NAMES.intersection(access.path.split(os.sep)) else ""
            why = f"{secret}a server reaches no socket of other programs"
            proposal.left_out.setdefault(access.path, f"connected: {why}")
        elif access.what in _NETWORK:
            addresses.setdefault(f"{_NETWORK[access.what]} {access.path}")
    if addresses:
        more = f" and {len(addresses) - _SHOWN} more" if len(addresses) > _SHOWN else ""
        proposal.network, proposal.network_why = True, ", ".join(list(addresses)[:_SHOWN]) + more
    for program in unseen:
        proposal.left_out[program or "a process"] = "what it opens could not be seen: it is protected from being read"
