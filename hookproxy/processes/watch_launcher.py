"""Becomes the program of a server, after it has handed a descriptor of its system calls to whoever watches it.

It is run as a file by a Python of its own and imports nothing of ours: `watch` starts it with the path of a socket and
the command, and sends it the program for seccomp over that socket.
"""

import array
import ctypes
import errno
import os
import socket
import struct
import sys

_SET_NO_NEW_PRIVS = 38
_SECCOMP = {"x86_64": 317, "aarch64": 277}  # the number of the system call
_SET_FILTER = 1
_NEW_LISTENER = 8
_WAIT_KILLABLE = 32  # Linux 5.19: a call that waits for the watcher is not begun again for each signal of Go's runtime


def _listen(program: bytes) -> int:
    """Install the filter for this process and all that it becomes. Returns the listener. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = _SECCOMP.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    code = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = int(libc.syscall(number, _SET_FILTER, flags, filters))
        if listener >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return listener


def _main(path: str, command: "list[str]") -> None:
    with socket.socket(socket.AF_UNIX) as watcher:
        watcher.connect(path)
        program = watcher.recv(65_536)
        try:
            listener = _listen(program)
        except OSError as error:
            watcher.send(str(error.errno).encode())
            sys.exit(126)
        watcher.sendmsg([b"0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
        os.close(listener)
        watcher.recv(1)  # it is watching now
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(127 if error.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:])
