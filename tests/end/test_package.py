"""The wheel and the sdist, built and installed as users do it: the base runs hooks, and the extras add the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import threading
import urllib.request
import zipfile
from email import message_from_string
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final

import pytest

from hookproxy import __version__
from hookproxy.cli.main import OPTIONAL_PACKAGES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROOT: Final = Path(__file__).parents[2]
BASE: Final = {
    "ahocorasick-rs",
    "anyio",
    "httptools",
    "httpx2",
    "jinja2",
    "jsonschema",
    "msgspec",
    "pydantic",
    "pyyaml",
    "rich",
    "starlette",
    "tree-sitter",
    "tree-sitter-bash",
    "uvicorn",
}
SERVER: Final = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}), flush=True)
"""
CALL: Final = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"push","arguments":{}}}\n'
HOOKS: Final = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo not today >&2; exit 2"}]}]}}


def run(*command: str | Path, home: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    environ |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    return subprocess.run(
        [str(word) for word in command],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=home,
        env=environ,
    )


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the built wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    ended = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, home=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.fixture(scope="module")
def home(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with a fresh environment `venv`, in which the wheel is installed without extras."""
    folder = tmp_path_factory.mktemp("home")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", home=folder)
    install(folder, next(dist.glob("*.whl")))
    return folder


def install(home: Path, what: str | Path) -> None:
    pip = (sys.executable, "-m", "pip", "--python", home / "venv/bin/python")
    ended = run(*pip, "install", "--quiet", "--no-compile", what, home=home)  # what is used is compiled then
    assert ended.returncode == 0, ended.stderr


def metadata(dist: Path) -> Message:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        return message_from_string(wheel.read(f"hookproxy-{__version__}.dist-info/METADATA").decode())


def test_the_base_depends_on_what_run_needs_only(dist: Path) -> None:
    needed = [line for line in metadata(dist).get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {line.split("<")[0].split(">")[0].lower() for line in needed} == BASE
    assert all("<" in line for line in needed), "each next major is excluded"


def test_the_long_description_links_to_no_file_of_the_repository(dist: Path) -> None:
    text = metadata(dist).get_payload()
    assert isinstance(text, str)
    targets = [part.partition(")")[0] for part in text.split("](")[1:]]
    assert targets
    assert all(target.startswith(("https://", "#")) for target in targets), targets


def test_the_sdist_has_all_that_its_tests_need(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for file in ("hookproxy/py.typed", "configs", "tests/conftest.py", "scripts/test", "deploy/example"):
        assert any(name == file or name.startswith(f"{file}/") for name in names), file
    assert "LICENSE" in names


def test_the_base_runs_hooks_and_names_the_extra_of_what_it_lacks(home: Path) -> None:
    hookproxy = home / "venv/bin/hookproxy"
    (home / "hooks.json").write_text(json.dumps(HOOKS))
    (home / "server.py").write_text(SERVER)
    command: list[str | Path] = [hookproxy, "run", "--hooks", "claude=hooks.json", "--", sys.executable, "server.py"]
    ended = run(*command, home=home, stdin=CALL)
    response = json.loads(ended.stdout)
    assert response["id"] == 7
    assert "not today" in json.dumps(response["result"])
    for verb, package, extra in (
        (["demo"], "mcp", "demo"),
        (["login", "https://127.0.0.1:9/mcp"], "mcp", "remote"),
        (["top"], "textual", "top"),
    ):
        ended = run(hookproxy, *verb, home=home)
        assert ended.returncode == 2, ended.stderr
        expected = f"error: hookproxy {verb[0]} needs the package {package}, which is not installed\n"
        hint = f"hint: {home / 'venv/bin/python'} -m pip install 'hookproxy[{extra}]'\n"
        assert expected + hint in ended.stderr
        assert "Traceback" not in ended.stderr


class Remote(BaseHTTPRequestHandler):
    """A server at an address that wants a login for everything but `ping`."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode()
        self.send_response(200 if message["method"] == "ping" else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


def test_the_base_reaches_servers_at_a_url(home: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), Remote) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/mcp"
            ping = '{"jsonrpc":"2.0","id":8,"method":"ping"}\n'
            ended = run(home / "venv/bin/hookproxy", "run", "--url", url, home=home, stdin=ping + CALL)
        finally:
            server.shutdown()
            thread.join()
    assert ended.returncode == 0, ended.stderr
    answers = {answer["id"]: answer for answer in map(json.loads, ended.stdout.splitlines())}
    assert answers[8]["result"] == {}
    assert f"hookproxy login {url}" in answers[7]["error"]["message"]


def test_the_base_has_the_page_of_the_console(home: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    command = [str(home / "venv/bin/hookproxy"), "console"]
    with subprocess.Popen(command, cwd=home, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            with urllib.request.urlopen(address, timeout=30) as page:
                assert page.status == 200
        finally:
            process.terminate()


def test_the_demo_runs_with_its_extra(home: Path, dist: Path) -> None:
    install(home, f"{next(dist.glob('*.whl'))}[demo]")
    ended = run(home / "venv/bin/hookproxy", "demo", home=home)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "refused" in ended.stdout or "blocked" in ended.stdout, ended.stdout


def test_each_optional_package_belongs_to_the_extra_that_is_named(dist: Path) -> None:
    needed = metadata(dist).get_all("Requires-Dist", [])
    for package, extra in OPTIONAL_PACKAGES.items():
        assert any(line.lower().startswith(package) and f"extra == '{extra}'" in line for line in needed), package
