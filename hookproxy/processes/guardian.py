"""Ends our processes if we are killed: neither the server nor hooks must outlive us.

The guardian is a shell that waits for the end of a pipe whose other end only we hold. The processes to end stand in a
table in memory that it inherits: an entry costs no system call, and wakes nobody. Of each hook it ends the whole
session, and the server with its descendants if the server still runs some time after its input has ended. Only Linux
says which session a process is in: elsewhere it ends each hook's process group, with all descendants of its members.

Law: it ends no process that is not ours. If another process has got the number of one of ours, it has started after the
entry was made.
"""

from __future__ import annotations

import os
import sys
import time

from . import platforms

TYPE_CHECKING = False  # `hookproxy run` starts it before it imports anything heavy
if TYPE_CHECKING:
    import mmap
    from typing import Final

OUR_GROUP: Final = "hookproxy"
"""The name of our cgroup where servers have some of their own beside it, which end with us (`sandbox/cgroups`)."""

_SHELL: Final = "/bin/sh"
_HALF: Final = 16
"""Bytes of the half of an entry that has the kind and the number of a process, and of the one that has its time. A half
is copied at once: whoever kills us leaves no torn one. Only with its first half, which is written last and removed
first, an entry counts."""
_ENTRY_BYTES: Final = 2 * _HALF
_NO_PROCESS: Final = b" " * _HALF
_TABLE_BYTES: Final = 4096
"""The table at first: a page, for as many hooks as may run at a time. Shells skip the NULs of what is not used yet."""

# It reads the fields of /proc/PID/stat after the name, which may hold anything, also parentheses: state, parent, group,
# session, … and start time in ticks since boot. The server has as much time as at the end of a session: 1 s, then TERM,
# 0.5 s later KILL. Hooks get KILL at once, as when their call is cancelled. Rounds are repeated because a process may
# start another one meanwhile.
_SCRIPT: Final = """
trap '' HUP INT TERM
cd /
read -r line
fields() {
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
    set -- "$1" ${stat##*) }
    parent=$3 session=$5 start=${21}
    [ "$start" ]
}
replaced() { fields "$1" && [ "$start" -gt "$2" ]; }
hooks=' ' server=
while read -r kind pid ticks; do
    if [ "$ticks" ] && ! replaced "$pid" "$ticks"; then
        if [ "$kind" = hook ]; then hooks="$hooks$pid "; else server=$pid; fi
    fi
done <&3
each() { for folder in /proc/[0-9]*; do pid=${folder#/proc/}; fields "$pid" && "$@"; done; }
end_hook() { case $hooks in *" $session "*) kill -KILL "$pid" && again=1 ;; esac; }
again=${hooks# }
for round in 1 2 3 4 5; do
    if [ "$again" ]; then again=; each end_hook 2>/dev/null; fi
done
own=
{ while IFS=: read -r number _ path; do [ "$number" = 0 ] && own=$path; done </proc/self/cgroup; } 2>/dev/null
case $own in
*/hookproxy)
    for round in 1 2 3 4 5; do
        for group in "/sys/fs/cgroup${own%/*}"/server-*; do
            [ -d "$group" ] || break 2
            { echo 1 >"$group/cgroup.kill"; rmdir "$group"; } 2>/dev/null
        done
        sleep 0.1
    done
    ;;
esac
fields "$server" || exit 0
born=$start
lives() { fields "$server" && [ "$start" = "$born" ]; }
note_pair() { pairs="$pairs $pid:$parent"; }
end_server() {
    for round in 1 2 3 4 5; do
        lives || exit 0
        sleep "$2"
    done
    pairs= tree=" $server " again=1
    each note_pair
    while [ "$again" ]; do
        again=
        for pair in $pairs; do
            pid=${pair%:*}
            case $tree in *" $pid "*) ;; *" ${pair#*:} "*) tree="$tree$pid " again=1 ;; esac
        done
    done
    lives && kill "-$1" $tree 2>/dev/null
}
end_server TERM 0.2
end_server KILL 0.1
"""

# The same with ps, which every system has; it says since when a process runs in seconds, and it may start some time
# after the entry was made in the same second: hence the two seconds. Of a hook whose first process has ended, the group
# counts: no process gets the number of a group that has members.
_TOOLS: Final = ("ps", "awk", "date")
_PORTABLE_SCRIPT: Final = """
trap '' HUP INT TERM
cd /
read -r line
hooks= server=
while read -r kind pid since; do
    if [ "$since" ]; then
        if [ "$kind" = hook ]; then hooks="$hooks $pid:$since"; else server=$pid:$since; fi
    fi
done <&3
tree() {
    LC_ALL=C ps -A -o pid= -o ppid= -o pgid= -o stat= -o etime= |
        awk -v entries="$1" -v without_first="$2" -v now="$(date +%s)" '
            $4 !~ /^Z/ {
                parent[$1] = $2; group[$1] = $3
                parts = split($5, time, /[-:]/)
                age = time[parts] + 60 * time[parts - 1]
                if (parts > 2) age += 3600 * time[parts - 2]
                if (parts > 3) age += 86400 * time[1]
                started[$1] = now - age
            }
            END {
                count = split(entries, list, " ")
                for (i = 1; i <= count; i++) {
                    split(list[i], entry, ":")
                    if (entry[1] in started) { if (started[entry[1]] <= entry[2] + 2) first[entry[1]] = 1 }
                    else if (without_first) first[entry[1]] = 1
                }
                do {
                    again = 0
                    for (pid in parent)
                        if (!(pid in ours) && ((pid in first) || (group[pid] in first) || (parent[pid] in ours))) {
                            ours[pid] = 1; again = 1
                        }
                } while (again)
                for (pid in ours) print pid
            }'
}
for round in 1 2 3 4 5; do
    [ "$hooks" ] || break
    pids=$(tree "$hooks" 1)
    [ "$pids" ] || break
    kill -KILL $pids 2>/dev/null
done
[ "$server" ] || exit 0
end_server() {
    for round in 1 2 3 4 5; do
        pids=$(tree "$server")
        [ "$pids" ] || exit 0
        sleep "$2"
    done
    pids=$(tree "$server")
    [ "$pids" ] && kill "-$1" $pids 2>/dev/null
}
end_server TERM 0.2
end_server KILL 0.1
"""


class _Guardian:
    """The guardian of this process: the table, and our end of the pipe, to which nothing is ever written."""

    def __init__(self) -> None:
        """Start it. Raises OSError, and NotImplementedError on systems that lack what it needs."""
        self._clock = _clock()
        self._entries: dict[int, int] = {}  # where the entry of each process is
        self._free: list[int] = []
        self._table = _open_table()
        os.truncate(self._table, _TABLE_BYTES)
        self._memory: mmap.mmap | None = None  # the table, from the first hook on
        waits, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate((waits, null, null, self._table))]
        argv = (_SHELL, "-c", _SCRIPT if platforms.linux else _PORTABLE_SCRIPT, "hookproxy-guardian")
        try:
            os.posix_spawn(_SHELL, argv, {"PATH": os.defpath}, file_actions=actions, setsid=True)
        finally:
            os.close(waits)
            os.close(null)
        os.register_at_fork(after_in_child=self._close)

    def add_server(self, pid: int) -> None:
        at = self._place_for(pid)
        os.pwrite(self._table, b"server %9d" % pid + self._now(), at)  # at once: to map the table takes 0.3 ms

    def make_room(self) -> None:
        if not self._free:
            self._mapped(len(self._entries) * _ENTRY_BYTES)

    def add_hook(self, pid: int) -> None:
        at = self._place_for(pid)
        memory = self._mapped(at)
        middle = at + _HALF
        memory[middle : middle + _HALF] = self._now()
        memory[at:middle] = b"hook   %9d" % pid

    def remove(self, pid: int) -> None:
        if (at := self._entries.pop(pid, -1)) >= 0:
            self._mapped(at)[at : at + _HALF] = _NO_PROCESS
            self._free.append(at)

    def _place_for(self, pid: int) -> int:
        self._entries[pid] = at = self._free.pop() if self._free else len(self._entries) * _ENTRY_BYTES
        return at

    def _now(self) -> bytes:
        """The second half of an entry: nothing that has started by now starts later than this."""
        number, ticks = self._clock
        return b"%15d\n" % (int(time.clock_gettime(number) * ticks) + 1)

    def _mapped(self, at: int) -> mmap.mmap:
        """The table in our memory, with room for an entry at this place."""
        memory = self._memory or self._map(_TABLE_BYTES)
        return memory if at < len(memory) else self._map(2 * len(memory))

    def _map(self, size: int) -> mmap.mmap:
        import mmap

        if self._memory is not None:
            self._memory.close()  # not every system can resize it
            os.truncate(self._table, size)
        self._memory = mmap.mmap(self._table, size)
        return self._memory

    def _close(self) -> None:
        """In a process that Python code of a hook forks: else the pipe would end only with that process."""
        os.close(self._pipe)


def _clock() -> tuple[int, int]:
    """The clock that says when processes have started, and its ticks per second."""
    if sys.platform == "linux" and platforms.linux:
        return time.CLOCK_BOOTTIME, os.sysconf("SC_CLK_TCK")
    return time.CLOCK_REALTIME, 1


def _open_table() -> int:
    """A new file that has no name. Raises OSError, also if the portable guardian could not work."""
    if sys.platform == "linux" and platforms.linux:
        return os.memfd_create("guarded")
    folders = os.defpath.split(os.pathsep)
    for tool in _TOOLS:
        if not any(os.access(os.path.join(folder, tool), os.X_OK) for folder in folders):
            raise FileNotFoundError(f"there is no {tool} in {os.defpath}")
    path = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"hookproxy-{os.urandom(16).hex()}")
    table = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return table


_guardian: list[_Guardian] = []  # one, from the first entry on
_problem: list[str] = []


def start() -> None:
    """Start the guardian, if it is not there; the first process that is guarded does that as well."""
    if not (_guardian or _problem):
        try:
            _guardian.append(_Guardian())
        except (OSError, NotImplementedError) as error:
            _problem.append(str(error))


def prepare_for_hook() -> None:
    """Have everything ready for the entry of one more hook; call it before the hook is started.

    Without it the first hook would run for a millisecond, until the table is mapped, before anybody would end it.
    """
    if not _guardian:
        start()
    if _guardian:
        _guardian[0].make_room()


def guard_server(pid: int) -> None:
    """From now on, end the server, with its descendants, if we are killed. Call it as soon as it has started."""
    start()
    if _guardian:
        _guardian[0].add_server(pid)


def guard_hook(pid: int) -> None:
    """From now on, end all processes of this hook's session if we are killed. Call it as soon as it has started."""
    if _guardian:
        _guardian[0].add_hook(pid)


def release(pid: int) -> None:
    """The process has been reaped, and its number may be used for another one."""
    if _guardian:
        _guardian[0].remove(pid)


def problem() -> str:
    """Why there is no guardian, in a few words; empty if there is one, or if none is needed so far."""
    return "".join(_problem)
