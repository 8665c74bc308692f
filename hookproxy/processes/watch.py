"""Watches what a program and all that it starts use, by seccomp's user notification.

`watch_launcher` installs a filter, hands us its listener over a socket, and becomes the program. From then on the
kernel stops each call of `watched_calls` until we have looked at its arguments, and then lets it go on unchanged. That
needs no privileges, nothing that is installed, and works for programs that are linked statically.

Law: watching changes nothing. Each call goes on, whatever we could read of it; if we end, the calls fail, and so the
program does not run on unwatched.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from ..model.errors import UserError
from . import guardian, platforms, process
from .stopped_calls import AT_CWD, let_go_on, memory, next_call, path_of_argument
from .watched_calls import Access, Call, What, address, calls_of, is_internet, opened, paths_of, program_for

_LONGEST_ADDRESS: Final = 128  # bytes of a sockaddr
_SAMPLE_SECONDS: Final = 0.1  # between two looks at memory: a peak that is shorter needs no limit of its own
_MOST_KEPT: Final = 100_000  # different things: 30 MB; a server that opens more shows its folders long before
_LONGEST_TEMPORARY: Final = 60  # characters: the path of a socket may have 107
_LAUNCHER: Final = os.path.join(os.path.dirname(__file__), "watch_launcher.py")
_HINT: Final = "Linux 5.5 or newer has what is needed; in a container, its seccomp profile must allow seccomp(2)"


class Watch:
    """What one program has used so far. `words` start it."""

    def __init__(self, folder: str) -> None:
        self.accesses: dict[Access, int] = {}
        """What was used, in the order of its first use, and how often."""
        self.memory = 0
        """Bytes: the most data that its processes had together."""
        self.tasks = 0
        """The most processes and threads that it had at once."""
        self.is_cut = False
        """It used more different things than are kept."""
        self.problem: UserError | None = None
        """Why it could not be watched: then it was not started."""
        self._calls = calls_of(os.uname().machine)
        self._processes: dict[int, str] = {}
        self._socket = socket.socket(socket.AF_UNIX)
        self._path = os.path.join(folder, "watch")
        self._socket.bind(self._path)
        self._socket.listen(1)
        self._failure: Exception | None = None
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._run, name="watches a server", daemon=True)
        self._thread.start()

    def words(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that starts this command watched."""
        return (sys.executable, "-I", "-S", _LAUNCHER, self._path, *command)

    def end(self) -> None:
        """Stop watching. What still runs cannot open anything any more. Raises what ended the watch before."""
        os.close(self._woken)
        self._thread.join()
        os.close(self._wake)
        self._socket.close()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        ready, _, _ = select.select([self._socket.fileno(), self._wake], [], [])
        if self._wake in ready:
            return
        with self._socket.accept()[0] as launcher:
            launcher.send(program_for(os.uname().machine))
            status, descriptors, _, _ = socket.recv_fds(launcher, 16, 1)
            if not descriptors:
                why = os.strerror(int(status or errno.ECANCELED))
                self.problem = UserError(f"programs cannot be watched here: {why}", _HINT)
                return
            launcher.send(b".")
        try:
            self._watch(descriptors[0])
        except Exception as failure:  # it is raised where the watch ends
            self._failure = failure
        finally:
            os.close(descriptors[0])

    def _watch(self, listener: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            events = dict(poll.poll(_SAMPLE_SECONDS * 1000))
            if self._wake in events:
                return
            if not events:
                self._sample()
            elif events[listener] & select.POLLIN:
                self._look(listener)
            else:  # all of them have ended
                return

    def _look(self, listener: int) -> None:
        """Look at one call, and let it go on."""
        call = next_call(listener)
        if call is None:
            return
        pid = call.pid
        try:
            if pid not in self._processes:
                self._processes[pid] = _name(pid)
                self._sample()
            self._note(pid, self._calls[call.number], call.arguments)
        except (OSError, ValueError, KeyError):  # it is protected from being read, as an agent of ssh is, or gone
            self._add(Access("unseen", "", self._processes.get(pid, "")))
        finally:
            let_go_on(listener, call)

    def _note(self, pid: int, call: Call, arguments: Sequence[int]) -> None:
        if call.kind == "socket":
            if is_internet(arguments[0]):
                self._add(Access("internet", "", self._processes[pid]))
        elif call.kind == "address":
            self._note_address(pid, call.what, arguments[call.path], arguments[call.path + 1])
        elif call.kind == "path":
            self._note_paths(pid, call, arguments)
        else:
            flags = arguments[call.flags] if call.flags >= 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            if call.kind == "openat2":
                flags = int.from_bytes(memory(pid, flags, 8), sys.byteorder)
            folder = arguments[call.folder] if call.folder >= 0 else AT_CWD
            self._note_open(pid, path_of_argument(pid, folder, arguments[call.path]), flags)

    def _note_paths(self, pid: int, call: Call, arguments: Sequence[int]) -> None:
        program = self._processes[pid]
        for what, folder, position in paths_of(call):
            path = path_of_argument(pid, arguments[folder] if folder >= 0 else AT_CWD, arguments[position])
            is_new_name = position != call.path
            if path and (is_new_name or os.path.lexists(path) != (what == "make")):
                whole = os.path.realpath(path) if what in ("run", "write") else _real_parent(path)
                self._add(Access(what, whole, program))
                if what == "run":
                    self._processes[pid] = os.path.basename(path)

    def _note_open(self, pid: int, path: str, flags: int) -> None:
        if not path:
            return
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            mode = 0
        what = opened(flags, bool(mode), stat.S_ISDIR(mode))
        needed = os.W_OK if what == "write" else os.R_OK
        if what is None or (what != "make" and not os.access(path, needed)):
            return
        if what == "make" and not os.path.isdir(os.path.dirname(path)):
            return
        self._add(Access(what, os.path.realpath(path), self._processes[pid]))

    def _note_address(self, pid: int, what: What, pointer: int, size: int) -> None:
        family, text = address(memory(pid, pointer, min(size, _LONGEST_ADDRESS)) if pointer else b"")
        if family == "unix" and text and not text.startswith("@"):
            if os.path.lexists(path := os.path.join(os.readlink(f"/proc/{pid}/cwd"), text)) or what == "listen":
                self._add(Access("make" if what == "listen" else what, _real_parent(path), self._processes[pid]))
        elif family:
            self._add(Access(what, text, self._processes[pid]))

    def _add(self, access: Access) -> None:
        if not self.accesses and access.what != "run":
            return  # what the launcher needs itself
        if len(self.accesses) >= _MOST_KEPT and access not in self.accesses:
            self.is_cut = True
            return
        self.accesses[access] = self.accesses.get(access, 0) + 1

    def _sample(self) -> None:
        """Look at the memory and the number of all processes that were seen and still run."""
        tasks, together, groups = 0, 0, set()
        for pid in list(self._processes):
            try:
                with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
                    values = dict(line.split(":", 1) for line in file)
            except OSError:
                del self._processes[pid]
                continue
            if (group := values["Tgid"]) not in groups:
                groups.add(group)
                tasks += int(values.get("Threads", "0"))
                together += 1024 * int(values.get("VmData", "0").split()[0])
        self.tasks = max(self.tasks, tasks)
        self.memory = max(self.memory, together)


@contextmanager
def watching() -> Iterator[Watch]:
    """A watch over one program, which is to be started within the context. Raises UserError."""
    if not platforms.linux:
        raise UserError("programs can be watched on Linux only", "run it there, and copy the table")
    if not calls_of(machine := os.uname().machine):
        raise UserError(f"programs cannot be watched on {machine}", "run it on x86-64 or ARM64, and copy the table")
    with ExitStack() as stack:
        try:
            above = tempfile.gettempdir()
            above = above if len(above) <= _LONGEST_TEMPORARY else "/tmp"
            folder = tempfile.TemporaryDirectory(prefix="hookproxy-", dir=above)  # nobody else can enter it
            watch = Watch(stack.enter_context(folder))
        except OSError as error:
            problem = f"there is no folder for the socket of the watch: {error.strerror}"
            raise UserError(problem, "make /tmp writable, or set TMPDIR") from None
        stack.callback(watch.end)
        yield watch


def start(words: tuple[str, ...]) -> int:
    """Start a watched command with our own standard input, output and error, in a session of its own.

    Returns its process id. It is ended if we are killed.
    """
    process.prepare_for_children()
    guardian.start()
    pid = os.posix_spawn(words[0], words, os.environb, setsid=True, setsigdef=process.RESET_SIGNALS)
    guardian.guard_server(pid)
    return pid


@contextmanager
def end_of_input() -> Iterator[int | None]:
    """A descriptor that becomes readable when nobody can write to our standard input any more; None: it is a file.

    Nothing is read from it: what comes there is the program's.
    """
    if sys.platform == "linux":  # type checkers understand that; `watching` refuses other systems
        with select.epoll() as poll:
            try:
                poll.register(0, 0)  # its end is reported in any case
            except OSError:
                yield None
            else:
                yield poll.fileno()
    else:
        yield None


def _name(pid: int) -> str:
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def _real_parent(path: str) -> str:
    """The path with the links on its way resolved, but not itself."""
    path = path.rstrip(os.sep) or os.sep
    if os.path.basename(path) in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
