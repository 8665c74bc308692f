"""Who is measured, and how each is started."""

from __future__ import annotations

import atexit
import json
import shlex
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import add
from pathlib import Path

from agent import Fault, Peer, Placement, Session, Spawner, time_limit

HERE = Path(__file__).resolve().parent
OWN_ENVIRONMENT = HERE.parents[1] / ".bench"
"""Made by scripts/bench: fastmcp, and the echo server where it could be compiled."""

DIRECT, FLOOR, FASTMCP, SPAWN = "direct", "floor", "fastmcp", "spawn + wait"
PLAIN, UNMATCHED = "hookproxy", "hookproxy unmatched"
PRE_HOOK, POST_HOOK = "hookproxy /bin/true", "hookproxy reader"

CONFIGURED = "hookproxy rules + audit"
KEYED, SIGNED = "hookproxy rules + keyed audit", "hookproxy rules + signed audit"
AUDITS = {CONFIGURED: "audit.jsonl", KEYED: "keyed.jsonl", SIGNED: "signed.jsonl"}
"""The file in the folder in which each of them records its calls."""
_KEYS = {
    CONFIGURED: "",
    KEYED: 'required = true\nchain = "keyed"\nchain_key_file = "audit.key"\n',
    SIGNED: 'required = true\nchain = "keyed"\nchain_key_file = "audit.key"\nsign_key = "audit-sign.key"\n',
}
_NO_AUDIT = "[audit]\nenabled = false\n"
_CONFIGURATION = """\
[permissions]
deny = ["delete_*", "echo(rm *)"]
ask = ["echo(git push:*)"]
[audit]
file = "FILE"
arguments = "full"
results = "full"
calls = "all"
"""

HIDING = "hookproxy [secrets]"
FLOWING = "hookproxy [flow]"
_FLOW = """\
[[flow.sources]]
tool = "echo"
labels = ["private"]
[[flow.sources]]
tool = "echo"
secrets = true
labels = ["secret"]
[[flow.sinks]]
tool = "echo"
labels = ["secret"]
by = "value"
[[flow.sinks]]
tool = "echo"
labels = ["untrusted"]
"""

REMOTE_FLOOR, REMOTE, REMOTE_HOOKS = "bridge floor", "hookproxy --url", "hookproxy --url, hooks"
MCP_REMOTE, SUPERGATEWAY, MCP_PROXY, FASTMCP_URL = "mcp-remote", "supergateway", "mcp-proxy", "fastmcp, URL"
REMOTE_TLS = "hookproxy --url https, hooks"
BRIDGES = (REMOTE_FLOOR, REMOTE, REMOTE_HOOKS, MCP_REMOTE, SUPERGATEWAY, MCP_PROXY, FASTMCP_URL)
"""The ways from standard input to a server at an address."""

PYTHON, WORKER, HTTP = "hookproxy python", "hookproxy worker", "hookproxy http"
COLD_PYTHON, WARM_PYTHON = "hookproxy Python script", "hookproxy warm Python script"
COLD_JQ, WARM_JQ = "hookproxy bash+jq", "hookproxy warm bash+jq"
WITHOUT_SPAWN = (PYTHON, WORKER, HTTP)
WITH_SCRIPTS = (COLD_PYTHON, WARM_PYTHON, COLD_JQ, WARM_JQ)

_HOOKS = {
    "function.py": "def check(document):\n    return None\n",
    "worker.py": "import json, sys\nfor line in sys.stdin:\n    json.loads(line)\n    print('{}', flush=True)\n",
    "script.py": "import json, sys\njson.load(sys.stdin)\n",
    "script.sh": 'text=$(jq -r .tool_input.text)\nif [ "$text" = rm ]; then exit 2; fi\n',
}

DRAINED = "drained"
"""The file in which the reading hook leaves how many bytes it got."""

Hooks = dict[str, tuple[str, str]]
"""Event → matcher and command, of a settings.json."""


@dataclass(frozen=True)
class Contestant:
    """A way to reach the echo server; `argv` makes the command from the server's."""

    name: str
    argv: Callable[[list[str]], list[str]]
    slow: bool = False
    """Measured less often, with fewer messages."""
    foreign: bool = False
    """Not ours: its faults are shown, and fail nothing."""
    bridge: bool = False
    """Its server is reached at an address: `argv` gets the URL instead of a command."""
    certificate: Path | None = None
    """The address is an https one; this file has the server's certificate and key."""


def echo_server() -> list[str]:
    """The echo server's command: the compiled one, else its twin."""
    compiled = OWN_ENVIRONMENT / "echo_server"
    return [str(compiled)] if compiled.exists() else [sys.executable, str(HERE / "echo_server.py")]


def bin_true() -> str:
    """Where the least of all programs is."""
    return "/bin/true" if Path("/bin/true").exists() else "/usr/bin/true"


def drain(folder: Path) -> list[str]:
    """A hook that reads its document to the end, and leaves its length in a file of the folder."""
    return [*echo_server(), "--drain", str(folder / DRAINED)]


def hookproxy(name: str, folder: Path, hooks: Hooks) -> Contestant:
    """The hookproxy of this environment, with the hooks in a settings.json of their own."""
    argv = [str(Path(sys.executable).parent / "hookproxy"), "run"]
    if hooks:
        groups = {
            event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]
            for event, (matcher, command) in hooks.items()
        }
        file = folder / f"settings-{len(list(folder.iterdir()))}.json"
        file.write_text(json.dumps({"hooks": groups}, indent=2))
        argv += ["--hooks", f"claude={file}"]
    return Contestant(name, lambda server: [*argv, "--", *server])


def configured(folder: Path, name: str = CONFIGURED) -> Contestant:
    """hookproxy with a hookproxy.toml: permission rules about the echo tool, and an audit of everything."""
    config = folder / f"{AUDITS[name]}.toml"
    config.write_text(_CONFIGURATION.replace("FILE", AUDITS[name]) + _KEYS[name])
    if name != CONFIGURED:
        _make_audit_keys(folder)
    argv = [str(Path(sys.executable).parent / "hookproxy"), "run", "--config", str(config)]
    return Contestant(name, lambda server: [*argv, "--", *server])


def hiding(folder: Path) -> Contestant:
    """hookproxy that hides secrets, and has nothing else to do."""
    config = folder / "secrets.toml"
    config.write_text(f'[secrets]\n[[secrets.restore]]\ntool = "echo"\n{_NO_AUDIT}')
    argv = [str(Path(sys.executable).parent / "hookproxy"), "run", "--config", str(config)]
    return Contestant(HIDING, lambda server: [*argv, "--", *server])


def flowing(folder: Path) -> Contestant:
    """hookproxy for which the echo tool is a source and a sink of data, and every call has a label that it may have."""
    config = folder / "flow.toml"
    config.write_text(_FLOW + _NO_AUDIT)
    argv = [str(Path(sys.executable).parent / "hookproxy"), "run", "--config", str(config)]
    return Contestant(FLOWING, lambda server: [*argv, "--", *server])


def _make_audit_keys(folder: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    signs = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for name, data in (("audit.key", b"k" * 32), ("audit-sign.key", signs)):
        (folder / name).touch(0o600)
        (folder / name).write_bytes(data)


def own(name: str, folder: Path, *lines: str, around: tuple[str, ...] = ()) -> Contestant:
    """The same with a hook of our own; `lines` say how it runs, beside the files of _HOOKS."""
    for file, text in _HOOKS.items():
        (folder / file).write_text(text)
    config = folder / f"{name.replace(' ', '-')}.toml"
    text = "\n".join(["[[hooks.PreToolUse]]", 'matcher = "echo"', *lines])
    config.write_text(text)
    argv = [str(Path(sys.executable).parent / "hookproxy"), "run", "--config", str(config)]

    def command(server: list[str]) -> list[str]:
        config.write_text(text)
        return [*around, *([str(config)] if around else []), *argv, "--", *server]

    return Contestant(name, command)


def all_runners(folder: Path) -> list[Contestant]:
    """The ways in which a hook runs without a new process, and scripts cold and warm."""
    python, shell = json.dumps([sys.executable, "script.py"]), json.dumps(["bash", "script.sh"])
    worker = json.dumps([sys.executable, "worker.py"])
    serving = (sys.executable, str(HERE / "hook_server.py"))
    listed = [
        own(PYTHON, folder, 'type = "python"', 'call = "function:check"'),
        own(WORKER, folder, 'type = "worker"', f"argv = {worker}"),
        own(HTTP, folder, 'type = "http"', 'url = "http://127.0.0.1:PORT/"', around=serving),
        own(COLD_PYTHON, folder, f"argv = {python}"),
        own(WARM_PYTHON, folder, f"argv = {python}", "warm = true"),
    ]
    if shutil.which("jq"):
        listed += [own(COLD_JQ, folder, f"argv = {shell}"), own(WARM_JQ, folder, f"argv = {shell}", "warm = true")]
    return listed


def all_bridges(hooked: Contestant, folder: Path) -> list[Contestant]:
    """The contestants that reach a server at an address; `hooked` has the hooks of two of them."""
    ours = [str(Path(sys.executable).parent / "hookproxy"), "run", "--url"]
    modules, python = OWN_ENVIRONMENT / "npm" / "node_modules" / ".bin", OWN_ENVIRONMENT / "bin" / "python"
    node, quiet = shutil.which("node") or "node", ["--outputTransport", "stdio", "--logLevel", "none"]
    foreign = {
        MCP_REMOTE: [node, str(modules / "mcp-remote")],
        SUPERGATEWAY: [node, str(modules / "supergateway"), *quiet, "--streamableHttp"],
        MCP_PROXY: [str(OWN_ENVIRONMENT / "mcp-proxy" / "bin" / "mcp-proxy"), "--transport", "streamablehttp"],
        FASTMCP_URL: [str(python), str(HERE / "fastmcp_proxy.py")],
    }
    hooks = hooked.argv([])[2:-1]  # of: hookproxy run OPTION... --
    bridges = [
        Contestant(REMOTE_FLOOR, lambda url: [sys.executable, str(HERE / "http_floor.py"), *url], bridge=True),
        Contestant(REMOTE, lambda url: ours + url, bridge=True),
        Contestant(REMOTE_HOOKS, lambda url: [*ours, *url, *hooks], bridge=True),
        *(
            Contestant(name, partial(add, words), slow=True, foreign=True, bridge=True)
            for name, words in foreign.items()
        ),
    ]
    return [*bridges, over_tls([*ours, "{url}", *hooks], folder)] if shutil.which("openssl") else bridges


def over_tls(words: list[str], folder: Path) -> Contestant:
    """hookproxy at an https address. It reads the system's certificates, as it does for users, and the server's."""
    server, trusted = folder / "server.pem", folder / "trusted.pem"
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    name = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run([*request, *name, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    server.write_text(key.read_text() + certificate.read_text())
    system = ssl.get_default_verify_paths().cafile
    trusted.write_text((Path(system).read_text() if system else "") + certificate.read_text())
    around = [shutil.which("env") or "env", f"SSL_CERT_FILE={trusted}"]
    return Contestant(
        REMOTE_TLS,
        lambda url: [*around, *(word.format(url=url[0]) for word in words)],
        bridge=True,
        certificate=server,
    )


_ADDRESSES: dict[tuple[str, Path | None], str] = {}
"""The URL of each echo server at an address, by placement and certificate. They run until the benchmark ends."""


def address(placement: Placement, certificate: Path | None) -> str:
    """The URL of the echo server, which runs where the agent does."""
    key = placement.name, certificate
    if key not in _ADDRESSES:
        argv = [sys.executable, str(HERE / "http_echo_server.py")]
        argv += [] if placement.agent is None else ["--cpu", str(placement.agent)]
        argv += [] if certificate is None else ["--tls", str(certificate)]
        server = subprocess.Popen(argv, stdout=subprocess.PIPE)
        atexit.register(server.kill)
        assert server.stdout is not None
        scheme = "http" if certificate is None else "https"
        _ADDRESSES[key] = f"{scheme}://127.0.0.1:{int(server.stdout.readline())}/mcp"
    return _ADDRESSES[key]


def all_contestants(folder: Path) -> dict[str, Contestant]:
    """By name; hook files are written into the folder."""
    true, elsewhere = bin_true(), "mcp__other__.*"
    fastmcp = [str(OWN_ENVIRONMENT / "bin" / "python"), str(HERE / "fastmcp_proxy.py")]
    floor = [sys.executable, str(HERE / "floor.py")]
    unmatched = hookproxy(UNMATCHED, folder, {"PreToolUse": (elsewhere, true), "PostToolUse": (elsewhere, true)})
    listed = [
        Contestant(DIRECT, lambda server: server),
        Contestant(FLOOR, lambda server: floor + server),
        hookproxy(PLAIN, folder, {}),
        unmatched,
        hookproxy(PRE_HOOK, folder, {"PreToolUse": ("mcp__.*__echo", true)}),
        hookproxy(POST_HOOK, folder, {"PostToolUse": ("mcp__.*__many", shlex.join(drain(folder)))}),
        *(configured(folder, name) for name in AUDITS),
        hiding(folder),
        flowing(folder),
        Contestant(SPAWN, lambda _: [sys.executable, str(HERE / "spawner.py")]),
        Contestant(FASTMCP, lambda server: fastmcp + server, slow=True, foreign=True),
        *all_runners(folder),
        *all_bridges(unmatched, folder),
    ]
    return {contestant.name: contestant for contestant in listed}


def start(contestant: Contestant, placement: Placement, folder: Path, boot_ms: int = 0) -> Peer:
    """Start it in front of a fresh echo server; raises Fault. Its standard error goes to the folder."""
    server = (
        [address(placement, contestant.certificate)] if contestant.bridge else echo_server() + placement.server_options
    )
    if boot_ms:
        server += ["--boot-ms", str(boot_ms)]
    kind = Spawner if contestant.name == SPAWN else Session
    log = folder / f"{contestant.name.replace('/', '-').replace(', ', ' ')}.stderr"
    with time_limit():
        return kind(contestant.argv(server), placement, log)


def try_out(contestant: Contestant, placement: Placement, folder: Path) -> str | None:
    """Why the contestant cannot take part, if so. Afterwards its compiled modules are cached and warm."""
    peer = None
    try:
        peer = start(contestant, placement, folder)
        with time_limit():
            if isinstance(peer, Session):
                peer.latencies(1)
        return None
    except Fault as fault:
        return str(fault)
    finally:
        if peer:
            peer.stop()
