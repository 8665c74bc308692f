"""`hookproxy console`: what it prints, where it listens, what it refuses, and how it opens a browser."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hookproxy.cli.console import main
from hookproxy.model.errors import UserError
from tests.support.console_process import PATIENCE, console, environment

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "70000"], "--port 70000 is not a port"),
        (["--port", "-1"], "--port -1 is not a port"),
        (["--name", "x"], "--name has no server to name"),
        (["--config", "none.toml"], "none.toml"),
        (["--compare", "none.toml"], "none.toml"),
        (["--socket", "/none/console.sock"], "/none"),
        (["--open", "--socket", "x.sock"], "--open: a browser cannot open a Unix socket"),
        (["--prot", "1"], "there is no option --prot"),
    ],
)
def test_what_cannot_work_is_an_error_before_anything_listens(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=re.escape(message)) as error:
        main(arguments)
    assert error.value.hint


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(UserError, match="already in use"):
        main(["--port", str(other.getsockname()[1])])


def test_it_listens_on_the_loopback_only_and_ends_with_a_signal(tmp_path: Path, home: Path) -> None:
    with console(tmp_path, environment(home)) as address:
        port = int(address.rpartition(":")[2].partition("/")[0])
        assert address.startswith(f"http://127.0.0.1:{port}/?token=")
        listening = f"0100007F:{port:04X} 00000000:0000 0A"
        assert listening in Path("/proc/net/tcp").read_text()
        assert f"00000000:{port:04X} 00000000:0000 0A" not in Path("/proc/net/tcp").read_text()


def test_two_consoles_have_different_addresses(tmp_path: Path, home: Path) -> None:
    with console(tmp_path, environment(home)) as first, console(tmp_path, environment(home)) as second:
        assert first.partition("=")[2] != second.partition("=")[2]


def test_a_unix_socket_is_for_this_account_alone_and_is_removed_at_the_end(tmp_path: Path, home: Path) -> None:
    with console(tmp_path, environment(home), "--socket", "console.sock") as address:
        path = tmp_path / "console.sock"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        connection.request("GET", address.partition("7800")[2])
        assert connection.getresponse().status == 200
        connection.close()
    assert not path.exists()


def test_the_browser_gets_the_address_in_a_file_that_nobody_else_can_read(tmp_path: Path, home: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        '#!/bin/sh\nfile=${1#file://}\n{ stat -c %a "$file"; echo "$1"; cat "$file"; } >seen.new\nmv seen.new seen\n'
    )
    browser.chmod(0o755)
    with console(tmp_path, environment(home) | {"BROWSER": str(browser)}, "--open") as address:
        with_fifo = subprocess.run(
            ["sh", "-c", "until [ -e seen ]; do :; done"], cwd=tmp_path, timeout=PATIENCE, check=False
        )
        assert with_fifo.returncode == 0
        mode, opened, page = (tmp_path / "seen").read_text().split("\n", 2)
        assert mode == "600"
        assert opened.startswith("file:///")
        assert "token" not in opened
        assert address in page
        file = Path(opened.strip().removeprefix("file://"))
        assert file.exists()
    assert not file.exists()


def test_an_interrupt_ends_it(tmp_path: Path, home: Path) -> None:
    command = [sys.executable, "-m", "hookproxy", "console"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"http://127.0.0.1" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (130, b"")


def test_a_signal_ends_open_streams_and_trials_without_a_word(tmp_path: Path, home: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text('[[hooks.PreToolUse]]\ncommand = "mkfifo at; echo >at; exec sleep 60"\n')
    command = [sys.executable, "-m", "hookproxy", "console", "--config", "hookproxy.toml"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        host, _, token = address.removeprefix("http://").partition("/")
        stream, trial = (http.client.HTTPConnection(host, timeout=PATIENCE) for _ in range(2))
        stream.request("GET", f"/{token}")
        first = stream.getresponse()
        cookie = str(first.getheader("Set-Cookie")).partition(";")[0]
        folder = re.findall(r"url=/(\w+)/", first.read().decode())[0]
        stream.request("GET", f"/{folder}/events", headers={"Cookie": cookie})
        events = stream.getresponse()
        assert events.readline().startswith(b"data: ")
        trial.request("GET", f"/{folder}/try", headers={"Cookie": cookie})
        form_token = re.findall(r'name="token" value="([^"]+)"', trial.getresponse().read().decode())[0]
        headers = {"Cookie": cookie, "Origin": f"http://{host}"}
        trial.request("POST", f"/{folder}/try", f"token={form_token}&tool=echo", headers)
        at = tmp_path / "at"
        subprocess.run(["sh", "-c", f"until [ -p {at} ]; do sleep 0.01; done; cat {at}"], timeout=PATIENCE, check=True)
        process.send_signal(signal.SIGTERM)
        assert "the trial was ended" in trial.getresponse().read().decode()
        events.read()
        _, errors = process.communicate(timeout=PATIENCE)
        stream.close()
        trial.close()
    assert (process.returncode, errors) == (143, "")
