"""What an agent starts as its hook: it hands the event to the guard, and writes what the guard says. Law 3.

It runs as a file, `python -I -S -E client.py AGENT SOCKET PROGRAM [NAME=VALUE …] [STATUS STDOUT]`, and imports
nothing but what Python has in itself: its start is most of what an event costs. Its words are written by `hookproxy
guard install`:

- AGENT and SOCKET, an absolute path: whoever listens there must have this account, else nobody is asked.
- PROGRAM is the path of hookproxy, which becomes the guard if nobody listens.
- NAME=VALUE are HOME and what else says where the person's configuration is. The environment of an agent may come from
  the project in which it works, so it does not say which policy holds: of these names, the guard gets no others.
- STATUS and STDOUT are how this agent reads a refusal. With them, whatever goes wrong refuses the call (fail closed).
  Without them it ends with status 1 and a sentence: what follows is up to the agent, as for any hook that fails.

If nobody listens, it starts the guard, once, and waits for it.
"""

import _socket
import posix
import sys

SO_PEERCRED = getattr(_socket, "SO_PEERCRED", 0)
START_SECONDS = 10.0  # a guard is ready within half a second, and on a busy machine within several
PIECE = 1 << 18  # bytes of one read: documents are mostly shorter
LONGEST_HEAD = 64  # bytes of the first line of a response: three numbers
LONGEST_RESPONSE = 64 << 20  # bytes: as long as the longest document
PLACES = ("HOME=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=")  # where the policy is, and what it needs


def main(words: list[str]) -> int:
    """Ask the guard. Returns the exit status that the agent reads."""
    agent, path, program = words[1:4]
    places = [word for word in words[4:] if word.startswith(PLACES)]
    closed = words[4 + len(places) :]
    try:
        document = read_all(0)
        status, output, text = ask(path, program, places, request(agent, document))
    except Exception as error:  # whatever it is, the agent must hear of it
        write_all(2, f"hookproxy: the guard did not judge this: {error}\n".encode("utf-8", "replace"))
        if not closed:
            return 1
        write_all(1, closed[1].encode("utf-8", "surrogateescape"))
        return int(closed[0])
    write_all(1, output)
    write_all(2, text)
    return status


def request(agent: str, document: bytes) -> bytes:
    """The request with this process's working directory and environment."""
    try:
        cwd = posix.getcwd().encode("utf-8", "surrogateescape")
    except OSError:  # it was removed
        cwd = b""
    environ = b"\0".join(name + b"=" + value for name, value in posix.environ.items())
    head = f"hookproxy-guard 1 {agent} {len(cwd)} {len(environ)} {len(document)}\n"
    return b"".join((head.encode(), cwd, environ, document))


def ask(path: str, program: str, places: list[str], message: bytes) -> tuple[int, bytes, bytes]:
    """Send the request and read the response: its status, standard output and standard error. Raises an exception."""
    guard = connect(path, program, places)
    check_owner(guard)
    guard.sendall(message)
    response = bytearray()
    while (parts := complete_parts(response)) is None:
        piece = guard.recv(PIECE)
        if not piece:
            raise ValueError("its response was cut off" if response else "it has ended")
        response += piece
    return parts


def complete_parts(response: bytearray) -> tuple[int, bytes, bytes] | None:
    """Status, standard output and standard error of a response; None: there must be more. Raises ValueError."""
    head, end, parts = bytes(response).partition(b"\n")
    if not end and len(head) < LONGEST_HEAD:
        return None
    words = head.split(b" ")
    failed = words[0] == b"failed"
    if len(words) != 3 or not all(word.isdigit() for word in words[failed:]):
        raise ValueError("its response cannot be read")
    status, output, text = 1 if failed else int(words[0]), int(words[1]), int(words[2])
    if status > 255 or output + text > LONGEST_RESPONSE:
        raise ValueError("its response cannot be read")
    if len(parts) < output + text:
        return None
    if failed:
        raise ValueError(parts.decode("utf-8", "replace"))
    return status, parts[:output], parts[output : output + text]


def connect(path: str, program: str, places: list[str]) -> _socket.socket:
    """Connect to the guard, and start it if nobody listens. Raises OSError."""
    guard = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        guard.connect(path)
        return guard
    except OSError:
        guard.close()
    import time

    started = start(path, program, places)
    until = time.monotonic() + START_SECONDS
    while True:
        guard = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            guard.connect(path)
            return guard
        except OSError:
            guard.close()
            if time.monotonic() > until:
                raise
        if started and (ended := posix.waitpid(started, posix.WNOHANG)) != (0, 0):
            started = 0  # if its status is 0, another one was faster
            if ended[1]:
                raise OSError("it cannot be started: hookproxy guard --foreground says why")
        time.sleep(0.02)  # noqa: TID251  # there is no event loop here


def start(path: str, program: str, places: list[str]) -> int:
    """Start the guard in the background; return its process id. It ends at once if another one is faster."""
    null = posix.open("/dev/null", posix.O_RDWR)
    words = [program, "guard", "--socket", path]
    actions = [(posix.POSIX_SPAWN_DUP2, null, descriptor) for descriptor in (0, 1, 2)]
    left_out = (b"PYTHON", *(name.encode() for name in PLACES)) if places else (b"PYTHON",)
    environ = [name + b"=" + value for name, value in posix.environ.items()]
    given = dict(entry.split(b"=", 1) for entry in environ if not entry.startswith(left_out))
    given |= dict(place.encode("utf-8", "surrogateescape").split(b"=", 1) for place in places)
    pid = posix.posix_spawn(program, words, given, file_actions=actions, setsid=True)
    posix.close(null)
    return pid


def check_owner(guard: _socket.socket) -> None:
    """Raise PermissionError unless whoever listens has this account."""
    if SO_PEERCRED:
        raw = guard.getsockopt(_socket.SOL_SOCKET, SO_PEERCRED, 12)  # three ints: process, user, group
        user = int.from_bytes(raw[4:8], sys.byteorder)
    else:  # a Mac: LOCAL_PEERCRED, whose second int is the user
        raw = guard.getsockopt(0, 1, 76)
        user = int.from_bytes(raw[4:8], sys.byteorder)
    if user != posix.geteuid():
        raise PermissionError(f"user {user} listens at its socket")


def read_all(descriptor: int) -> bytes:
    """All that comes from a descriptor."""
    pieces = []
    while piece := posix.read(descriptor, PIECE):
        pieces.append(piece)
    return b"".join(pieces)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it; whoever reads no more wants no more."""
    try:
        while data:
            data = data[posix.write(descriptor, data) :]
    except OSError:
        pass


if __name__ == "__main__":
    posix._exit(main(sys.argv))  # nothing is buffered, and ending an interpreter takes time
