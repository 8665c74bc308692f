"""What an agent starts as its hook: it hands the event to the guard, and writes what the guard says. Law 3.

It runs as a file, `python -I -S -E client.py AGENT SOCKET PROGRAM [NAME=VALUE …] [[open] STATUS STDOUT]`, and imports
nothing but what Python has in itself: its start is most of what an event costs. Its words are written by `hookproxy
guard install`:

- AGENT and SOCKET, an absolute path: whoever listens there must have this account, else nobody is asked.
- PROGRAM is the path of hookproxy, which becomes the guard if nobody listens.
- NAME=VALUE are HOME and what else says where the person's configuration is. The environment of an agent may come from
  the project in which it works, so it does not say which policy holds: of these names, the guard gets no others.
  SECONDS=VALUE is how long it may take: less than the agent waits, which would let the call go on.
- STATUS and STDOUT are how this agent reads a refusal. With them, whatever goes wrong refuses the call (fail closed).
  With `open` before them, only where the administrator has a policy. Otherwise it ends with status 1 and a sentence:
  what follows is up to the agent, as for any hook that fails.

If nobody listens, it starts the guard and waits for it. A guard that ends before it has said anything, because it was
killed or another version of hookproxy is installed now, is followed by another one, which is asked again.
"""

import _socket
import posix
import sys
import time

SO_PEERCRED = getattr(_socket, "SO_PEERCRED", 0)
SOL_SOCKET, SO_SNDTIMEO = _socket.SOL_SOCKET, _socket.SO_SNDTIMEO
LONG = 8 if sys.maxsize >> 32 else 4  # bytes of the system's `long`: a time has two
LONGEST_SECONDS = 3600.0  # if nothing says how long it may take: no agent waits longer
START_SECONDS = 10.0  # a guard is ready within half a second, and on a busy machine within several
PAUSES = (0.01, 0.2)  # seconds, after which another guard is asked: one that was killed may seem to listen for a moment
STDERR = 2
PIECE = 1 << 18  # bytes of one read: documents are mostly shorter
OPEN = "open"  # the word before a refusal that is only for an administrator's policy
MANAGED = ("/etc/hookproxy/managed.toml", "/etc/hookproxy/managed.d")  # that policy
LONGEST_HEAD = 64  # bytes of the first line of a response: three numbers
LONGEST_RESPONSE = 64 << 20  # bytes: as long as the longest document
SECONDS = "SECONDS="
# where the policy is, what it needs, and where consoles find the guard
PLACES = ("HOME=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=")


def main(words: list[str]) -> int:
    """Ask the guard. Returns the exit status that the agent reads."""
    agent, path, program = words[1:4]
    places = [word for word in words[4:] if word.startswith(PLACES)]
    limit = [word for word in words[4:] if word.startswith(SECONDS)]
    refusal = words[4 + len(places) + len(limit) :]
    try:
        until = time.monotonic() + float(limit[0][len(SECONDS) :] if limit else LONGEST_SECONDS)
        document = read_all(0)
        status, output, text = ask(path, program, places, request(agent, document), until)
    except Exception as error:  # whatever it is, the agent must hear of it
        write_all(2, f"hookproxy: the guard did not judge this: {error}\n".encode("utf-8", "replace"))
        if refusal[:1] in ([], [OPEN]) and not is_managed():
            return 1
        if not refusal:
            return 2  # as most agents read a refusal: nobody has said how this one does
        status, output, text = int(refusal[-2]), refusal[-1].encode("utf-8", "surrogateescape"), b""
    write_all(1, output)
    write_all(2, text)
    return status


def is_managed() -> bool:
    """Whether the administrator has a policy, or nobody can say."""
    for path in MANAGED:
        try:
            posix.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            pass
        return True
    return False


def request(agent: str, document: bytes) -> bytes:
    """The request with this process's working directory and environment."""
    try:
        cwd = posix.getcwd().encode("utf-8", "surrogateescape")
    except OSError:  # it was removed
        cwd = b""
    environ = b"\0".join(name + b"=" + value for name, value in posix.environ.items())
    head = f"hookproxy-guard 1 {agent} {len(cwd)} {len(environ)} {len(document)}\n"
    return b"".join((head.encode(), cwd, environ, document))


def ask(path: str, program: str, places: list[str], message: bytes, until: float) -> tuple[int, bytes, bytes]:
    """Send the request and read the response: its status, standard output and standard error.

    `until` is in the seconds of the monotonic clock. Raises an exception.
    """
    for pause in PAUSES:
        try:
            return exchange(connect(path, program, places, until), message, until)
        except EOFError:
            time.sleep(pause)  # noqa: TID251  # there is no event loop here
    return exchange(connect(path, program, places, until), message, until)


def exchange(guard: _socket.socket, message: bytes, until: float) -> tuple[int, bytes, bytes]:
    """As `ask`, with whoever listens. Raises EOFError if it has ended without a word, and other exceptions."""
    response = bytearray()
    parts = None
    try:
        check_owner(guard)
        guard.settimeout(max(until - time.monotonic(), 0.001))
        guard.sendall(message)
        while (parts := complete_parts(response)) is None:
            guard.settimeout(max(until - time.monotonic(), 0.001))
            piece = guard.recv(PIECE)
            if not piece:
                break
            response += piece
    except ConnectionError:
        pass
    except TimeoutError:
        raise TimeoutError("it has not answered in time") from None
    finally:
        guard.close()
    if parts is not None:
        return parts
    if response:
        raise ValueError("its response was cut off")
    raise EOFError("it has ended")


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


def connect(path: str, program: str, places: list[str], until: float) -> _socket.socket:
    """Connect to the guard, and start it if nobody listens. Raises OSError."""
    if guard := connected(path, until):
        return guard
    started = start(path, program, places)
    listens = min(time.monotonic() + START_SECONDS, until)
    while not (guard := connected(path, until)):
        if time.monotonic() > listens:
            raise TimeoutError("it does not listen in time: hookproxy guard --foreground says why")
        ended = posix.waitpid(started, posix.WNOHANG)
        if ended[1]:
            raise OSError("it cannot be started: hookproxy guard --foreground says why")
        if ended != (0, 0):  # another one was faster, or is about to end
            started = start(path, program, places)
        time.sleep(0.02)  # noqa: TID251  # there is no event loop here
    return guard


def connected(path: str, until: float) -> _socket.socket | None:
    """A connection to whoever listens; None: nobody does. Raises TimeoutError: whoever listens accepts nobody."""
    guard = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        # it waits in the kernel, for a place among those who wait: without a timeout of the system's own, for ever
        seconds = max(until - time.monotonic(), 0.001)
        parts = (int(seconds), int(seconds % 1 * 1e6))
        guard.setsockopt(SOL_SOCKET, SO_SNDTIMEO, b"".join(part.to_bytes(LONG, sys.byteorder) for part in parts))
        guard.connect(path)
    except BlockingIOError:
        guard.close()
        raise TimeoutError("it has not answered in time") from None
    except OSError:
        guard.close()
        return None
    return guard


def start(path: str, program: str, places: list[str]) -> int:
    """Start the guard in the background; return its process id. It ends at once if another one is faster.

    Raises OSError.
    """
    keep_descriptors()
    null = posix.open("/dev/null", posix.O_RDWR)
    words = [program, "guard", "--socket", path]
    actions = [(posix.POSIX_SPAWN_DUP2, null, descriptor) for descriptor in (0, 1, 2)]
    left_out = (b"PYTHON", *(name.encode() for name in PLACES)) if places else (b"PYTHON",)
    environ = [name + b"=" + value for name, value in posix.environ.items()]
    given = dict(entry.split(b"=", 1) for entry in environ if not entry.startswith(left_out))
    given |= dict(place.encode("utf-8", "surrogateescape").split(b"=", 1) for place in places)
    try:
        pid = posix.posix_spawn(program, words, given, file_actions=actions, setsid=True)
    except OSError as error:
        hint = "install hookproxy again, or delete its entries from the hook file of this agent"
        raise OSError(f"{program} cannot be started: {error.strerror}; {hint}") from None
    finally:
        posix.close(null)
    return pid


def keep_descriptors() -> None:
    """Let what is started not have what the agent has open: a lock or a pipe of it would stay so for as long."""
    try:
        names = posix.listdir("/dev/fd")
    except OSError:  # there is no such folder here
        return
    for name in names:
        try:
            if int(name) > STDERR:
                posix.set_inheritable(int(name), False)
        except OSError:  # it is the one that has listed them
            pass


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
