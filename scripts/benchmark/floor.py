"""The floor: the least that a relay in Python can cost. Two blocking threads carry bytes and parse nothing.

Usage: floor.py COMMAND [ARG...]
"""

import os
import sys
import threading

CHUNK = 65536
"""A Linux pipe's capacity, in bytes: more never arrives in one read."""


def carry(source: int, target: int) -> None:
    """Copy bytes until the source ends or the target is gone, then close the target."""
    try:
        while piece := os.read(source, CHUNK):
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(target, rest) :]
    except OSError:
        pass
    os.close(target)


def main(command: list[str]) -> int:
    """Start the server, relay until it ends, end as it did."""
    server_in, to_server = os.pipe()
    from_server, server_out = os.pipe()
    inherit = [(os.POSIX_SPAWN_DUP2, server_in, 0), (os.POSIX_SPAWN_DUP2, server_out, 1)]
    server = os.posix_spawnp(command[0], command, os.environ, file_actions=inherit)
    os.close(server_in)
    os.close(server_out)
    threading.Thread(target=carry, args=(0, to_server), daemon=True).start()
    carry(from_server, 1)
    return os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
