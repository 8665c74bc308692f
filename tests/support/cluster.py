"""Three gateways with one store behind the real HAProxy or nginx of Debian, with the configurations of `deploy/`."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.free_ports import free_port
from tests.support.gateway_process import HOOKPROXY
from tests.support.store_process import StoreProcess

DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy"
SERVER: Final = Path(__file__).resolve().parents[1] / "end" / "tool_server.py"
HAPROXY: Final = shutil.which("haproxy") or shutil.which("/usr/sbin/haproxy")
NGINX: Final = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
NAMES: Final = ("gateway-a", "gateway-b", "gateway-c")
PODS: Final = ("hookproxy-0", "hookproxy-1", "hookproxy-2")
_DOMAIN: Final = "hookproxy-gateways.hookproxy.svc.cluster.local"  # of the pods in `deploy/kubernetes`
_ADDRESSES: Final = ("10.0.0.11", "10.0.0.12", "10.0.0.13")  # of the gateways in the files of `deploy/`
_PATIENCE: Final = 60.0  # seconds: other tests run at the same time
_PAUSE: Final = 0.02
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_STATELESS: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


class Response(NamedTuple):
    """What came back; status 0: the connection broke."""

    status: int
    session: str
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """The first text of a tool's result."""
        return str(self.body.get("result", {}).get("content", [{}])[0].get("text", self.body))

    @property
    def ran(self) -> bool:
        """The tool has run, as the response says."""
        return self.status == 200 and self.text.startswith("ran ")

    @property
    def asked(self) -> str:
        """The request state of a call that a person must approve; empty: it is no such response."""
        return str(self.body.get("result", {}).get("requestState", ""))


class Gateway:
    """One of the gateways."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self.folder = cluster.folder / name
        self.folder.mkdir()
        self.port, self.probes = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._terminated = False
        self.write(cluster.config)

    def write(self, config: str) -> None:
        """Write gateway.toml."""
        listen = f'[gateway]\nlisten = ["http://127.0.0.1:{self.port}"]\nprobes = "http://127.0.0.1:{self.probes}"\n'
        (self.folder / "gateway.toml").write_text(listen + config)

    def start(self) -> None:
        """Start it, and do not wait."""
        self._terminated = False
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [HOOKPROXY, "serve", "--config", "gateway.toml", "--instance", self.name],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"},
                start_new_session=True,
            )

    def ready(self) -> None:
        """Wait until it takes sessions."""
        wait_until(lambda: self.probe("/readyz") == "ready\n", lambda: self.log)

    def probe(self, path: str) -> str:
        """What it says at its own address for probes; empty: it does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.probes, timeout=_PATIENCE)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except OSError:
            return ""
        finally:
            connection.close()

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_PATIENCE)

    def terminate(self) -> None:
        """SIGTERM."""
        assert self._process is not None
        self._terminated = True
        self._process.send_signal(signal.SIGTERM)

    def end(self) -> int:
        """SIGTERM, unless it has got one; returns the exit status."""
        assert self._process is not None
        if not self._terminated:
            self.terminate()
        return self._process.wait(_PATIENCE)


class Cluster:
    """Three gateways, a store, and a balancer, in a folder."""

    def __init__(self, folder: Path, config: str, *, extra: str = "", names: Sequence[str] = NAMES) -> None:
        """`config` is of servers, rules and limits; `extra` is for the table `[gateway]`; `names` are the gateways'."""
        self.folder = folder
        (folder / "store").mkdir()
        self.store = StoreProcess(folder / "store")
        (folder / "shared").mkdir()
        self.calls_path = folder / "shared" / "calls"
        self.tokens = {user: self._token(user) for user in ("alice", "bob")}
        (folder / "seal.key").write_bytes(os.urandom(32))
        (folder / "seal.key").chmod(0o600)
        command = json.dumps([sys.executable, "-S", "-E", str(SERVER)])
        self.port = free_port()
        self.config = f"""
tokens = "{folder}/tokens"
seal_keys = ["{folder}/seal.key"]
public_url = "http://127.0.0.1:{self.port}"
{extra}
[gateway.per_user]
sessions = 256  # tests leave theirs open
[gateway.store]
url = "{self.store.url}"
[servers.tools]
command = {command}
share = "all"
env = {{ E2E_LOG = "{self.calls_path}" }}
sandbox = {{ write = ["{self.calls_path.parent}"] }}
{config}
"""
        self.gateways = [Gateway(self, name) for name in names]
        self._balancer: subprocess.Popen[bytes] | None = None

    def _token(self, user: str) -> str:
        command = [HOOKPROXY, "token", "new", user, "--file", str(self.folder / "tokens")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def start(self, balancer: str) -> None:
        """Start all of it, with `haproxy` or `nginx` in front."""
        self.start_gateways()
        self.start_balancer(self._haproxy() if balancer == "haproxy" else self._nginx())

    def start_gateways(self) -> None:
        """Start the gateways, and wait until they take sessions."""
        for gateway in self.gateways:
            gateway.start()
        for gateway in self.gateways:
            gateway.ready()

    def start_balancer(self, command: Sequence[str]) -> None:
        """Start the balancer, and wait until it reaches a gateway."""
        with (self.folder / "balancer.log").open("ab") as log:
            self._balancer = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        wait_until(
            lambda: self.ask("nobody", {}).status == 401, lambda: (self.folder / "balancer.log").read_text()
        )  # the answer of a gateway

    def _haproxy(self) -> Sequence[str]:
        text = (DEPLOY / "balancers" / "haproxy.cfg").read_text()
        text = re.sub(r"bind :443 .*", f"bind 127.0.0.1:{self.port}", text)
        for gateway, address in zip(self.gateways, _ADDRESSES, strict=True):
            server = f"server {gateway.name} {address}:8765"
            assert server in text
            text = text.replace(server, f"server {gateway.name} 127.0.0.1:{gateway.port} port {gateway.probes}")
        text = text.replace("default-server check port 9090", "default-server check")  # here they are on one machine
        (self.folder / "haproxy.cfg").write_text(text)
        assert HAPROXY is not None
        return [HAPROXY, "-db", "-f", str(self.folder / "haproxy.cfg")]

    def haproxy_of_kubernetes(self, dns_port: int, probes: int) -> Sequence[str]:
        """HAProxy as in `deploy/kubernetes`. It finds the gateways by their names in DNS, and here by their ports."""
        text = (DEPLOY / "kubernetes" / "haproxy.cfg").read_text()
        text = replaced(text, r"bind :8443 .*", f"bind 127.0.0.1:{self.port}")
        text = replaced(text, r"bind :8404", f"bind 127.0.0.1:{probes}")
        text = replaced(text, r"parse-resolv-conf", f"nameserver here 127.0.0.1:{dns_port}")
        text = replaced(text, r"check port 9090", "check")
        for gateway in self.gateways:
            name = re.escape(f"{gateway.name}.{_DOMAIN}")
            text = replaced(text, f"{name}:8765", f"{gateway.name}.{_DOMAIN}:{gateway.port} port {gateway.probes}")
        (self.folder / "haproxy.cfg").write_text(text)
        assert HAPROXY is not None
        return [HAPROXY, "-db", "-f", str(self.folder / "haproxy.cfg")]

    def _nginx(self) -> Sequence[str]:
        text = (DEPLOY / "balancers" / "nginx.conf").read_text()
        text = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{self.port};", text)
        text = re.sub(r"(?m)^ *ssl_certificate.*\n", "", text)
        for gateway, address in zip(self.gateways, _ADDRESSES, strict=True):
            assert f"{address}:8765" in text
            text = text.replace(f"{address}:8765", f"127.0.0.1:{gateway.port}")
        (self.folder / "hookproxy.conf").write_text(text)
        paths = "".join(
            f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (self.folder / "nginx.conf").write_text(
            f"pid {self.folder}/nginx.pid;\nerror_log {self.folder}/balancer.log;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{paths}include {self.folder}/hookproxy.conf;\n}}\n"
        )
        assert NGINX is not None
        return [NGINX, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), "-g", "daemon off;"]

    def domain_of(self, gateway: Gateway) -> str:
        """Its pod's name in DNS."""
        return f"{gateway.name}.{_DOMAIN}"

    def close(self) -> None:
        """End everything."""
        for gateway in self.gateways:
            gateway.kill()
        self.store.kill()
        if self._balancer is not None and self._balancer.poll() is None:
            self._balancer.terminate()
            self._balancer.wait(_PATIENCE)

    # --- agents ---

    def ask(
        self, user: str, message: object, session: str = "", port: int = 0, headers: dict[str, str] | None = None
    ) -> Response:
        """Send one message on a connection of its own, to the balancer or to one gateway."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=_PATIENCE)
        found = {**_HEADERS, "Authorization": f"Bearer {self.tokens.get(user, 'none')}", **(headers or {})}
        if session:
            found["Mcp-Session-Id"] = session
        try:
            connection.request("POST", "/mcp/tools", json.dumps(message), found)
            response = connection.getresponse()
            return Response(response.status, response.getheader("Mcp-Session-Id", ""), _body(response.read().decode()))
        except (OSError, http.client.HTTPException):
            return Response(0, "", {})
        finally:
            connection.close()

    def call(self, tool: str, user: str = "alice", port: int = 0, **more: object) -> Response:
        """A call that stands alone. `more` are members of its parameters."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": {"path": "a"}, "_meta": _STATELESS, **more},
        }
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
        return self.ask(user, message, port=port, headers=headers)

    def open_session(self, user: str = "alice") -> str:
        """The id of a new session."""
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        opened = self.ask(user, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert opened.status == 200, opened
        self.ask(user, {"jsonrpc": "2.0", "method": "notifications/initialized"}, opened.session)
        return opened.session

    def call_in(self, session: str, tool: str, number: int = 1, user: str = "alice") -> Response:
        """A call in a session."""
        params = {"name": tool, "arguments": {}}
        return self.ask(user, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}, session)

    def executed(self, tool: str) -> int:
        """How often the tool has run, at the servers of all gateways."""
        if not self.calls_path.exists():
            return 0
        lines = self.calls_path.read_text().splitlines()
        return sum('"tools/call"' in line and f'"name": "{tool}"' in line for line in lines)

    def for_all(self, act: Callable[[Gateway], None]) -> None:
        """Do something to each gateway, to all at a time."""
        with ThreadPoolExecutor(len(self.gateways)) as pool:
            list(pool.map(act, self.gateways))


class Load:
    """Calls from several threads, one after another in each, until it is stopped."""

    def __init__(self, call: Callable[[], Response], threads: int = 8) -> None:
        self._call = call
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self.responses: list[Response] = []
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            response = self._call()
            with self._lock:
                self.responses.append(response)

    def reaches(self, more: int) -> None:
        """Wait for so many more responses."""
        goal = len(self.responses) + more
        wait_until(lambda: len(self.responses) >= goal, lambda: f"{len(self.responses)} of {goal}")

    def stop(self) -> list[Response]:
        """Stop, and return all responses."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(_PATIENCE)
        return self.responses


def restarted_under_load(cluster: Cluster, tool: str) -> list[Response]:
    """Restart each gateway while calls of this tool come; the responses to all of them."""
    load = Load(lambda: cluster.call(tool))
    for gateway in cluster.gateways:
        load.reaches(20)
        assert gateway.end() == 0, gateway.log
        load.reaches(20)
        gateway.start()
        gateway.ready()
        load.reaches(20)
    return load.stop()


def wait_until(condition: Callable[[], bool], why_not: Callable[[], str]) -> None:
    """Poll processes that have no other way to say it."""
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, why_not()
        time.sleep(_PAUSE)


def replaced(text: str, pattern: str, by: str) -> str:
    """The text with something replaced that must be in it once."""
    changed, count = re.subn(pattern, by, text)
    assert count == 1, pattern
    return changed


def _body(text: str) -> dict[str, Any]:
    if text.startswith(("id:", ":", "event:", "data:")):
        text = [line[6:] for line in text.splitlines() if line.startswith("data: {")][-1]
    with suppress(ValueError):
        found: dict[str, Any] = json.loads(text)
        return found
    return {}
