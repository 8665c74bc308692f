"""An MCP server over stdio with the tools of one of AgentDojo's suites, over its environment.

    python suite_server.py SUITE                        the suite's own environment: for `hookproxy init flow`
    python suite_server.py --started-at SOCKET EPISODE  an episode, by a process that has loaded AgentDojo already

To load AgentDojo takes two seconds, and there are thousands of episodes. So `Preloaded` is a process that has loaded
it: the server that hookproxy starts hands its standard input and output over to a fork of that process, and ends with
it. EPISODE is a file that says which environment; beside it lies what became of it, written after each call.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def serve(name: str, env: object, incoming: object, outgoing: object, keep: object) -> None:
    """Answer requests until there are no more. `keep` is called with each call that ran."""
    import suites

    for line in incoming:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        params = request.get("params", {})
        match request["method"]:
            case "initialize":
                result = {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": f"agentdojo-{name}", "version": suites.VERSION},
                }
            case "tools/list":
                result = {"tools": suites.listing(name)}
            case "tools/call":
                call = (params["name"], params.get("arguments", {}))
                text, failed = suites.run(name, env, call)
                keep(call, failed)
                result = {"content": [{"type": "text", "text": text}], "isError": failed}
            case _:
                result = {}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        outgoing.write(json.dumps(answer, default=str).encode() + b"\n")
        outgoing.flush()


def serve_episode(path: str) -> None:
    """Serve the episode that a file describes, on standard input and output."""
    import pickle

    import suites

    with open(path, encoding="utf-8") as file:
        episode = json.load(file)
    name = episode["suite"]
    env = suites.environment(name, episode["user_task"], episode["injections"])
    ran: list[tuple[suites.Call, bool]] = []

    def keep(call: suites.Call | None = None, failed: bool = False) -> None:
        if call is not None:
            ran.append((call, failed))
        with open(f"{path}.new", "wb") as state:
            pickle.dump((env, ran), state)
        os.replace(f"{path}.new", f"{path}.state")

    keep()
    serve(name, env, sys.stdin.buffer, sys.stdout.buffer, keep)


class Preloaded:
    """A process that has loaded AgentDojo, and forks for each server that connects to its socket."""

    def __init__(self, path: str) -> None:
        import suites

        for name in suites.NAMES:
            suites.environment(name, None, {})
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)
        self._pid = os.fork()
        if not self._pid:
            self._accept(listener)
        listener.close()

    def _accept(self, listener: socket.socket) -> None:
        import signal

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            connection, _ = listener.accept()
            if os.fork():
                connection.close()
                continue
            listener.close()
            data, (incoming, outgoing), _, _ = socket.recv_fds(connection, 65536, 2)
            os.dup2(incoming, 0)
            os.dup2(outgoing, 1)
            try:
                serve_episode(data.decode())
            finally:
                sys.stdout.flush()
                os._exit(0)

    def end(self) -> None:
        """End the process."""
        import signal

        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def main() -> None:
    """Serve what the command line says."""
    if sys.argv[1] == "--started-at":
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(sys.argv[2])
            socket.send_fds(connection, [sys.argv[3].encode()], [0, 1])
            os.close(0)
            os.close(1)
            connection.recv(1)  # until the fork ends
        return
    import suites

    env = suites.environment(sys.argv[1], None, {})
    serve(sys.argv[1], env, sys.stdin.buffer, sys.stdout.buffer, lambda *_: None)


if __name__ == "__main__":
    main()
