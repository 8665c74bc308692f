"""The GitHub Action: its form, and its script as a runner starts it, in a small repository with a pull request."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = ROOT / "scripts" / "action"
ACTION: Final[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: Final = ACTION["runs"]["steps"]
CASES: Final = '[[case]]\nname = "a delete"\ncall = { tool = "delete_file" }\nexpect = { decision = "deny" }\n'


# --- the form ---


def test_each_action_that_it_uses_is_pinned_by_a_commit() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in used)


def test_nothing_is_filled_into_a_shells_text() -> None:
    runs = [step["run"] for step in STEPS if "run" in step]
    assert runs
    assert not any("${{" in run for run in runs)


def test_each_input_is_read_and_only_the_comment_has_a_token() -> None:
    given = {value for step in STEPS for value in step.get("env", {}).values()}
    read = {*re.findall(r"inputs\.([\w-]+)", " ".join(given)), "mode"}
    assert read == set(ACTION["inputs"])
    with_token = [step["name"] for step in STEPS if "token" in json.dumps(step.get("env", {})).lower()]
    assert with_token == ["Comment"]


def test_what_has_a_token_and_what_runs_code_of_the_pull_request_exclude_each_other() -> None:
    conditions = {step["name"]: step["if"] for step in STEPS if "name" in step}
    assert conditions["Comment"] == "inputs.mode == 'comment'"
    assert conditions["Check"] == conditions["Install"] == "inputs.mode != 'comment'"


# --- the script ---


class Repository:
    """A repository with a base commit, and the event of a pull request."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.runner = folder / "runner"
        self.runner.mkdir()
        self.git("init", "-q")
        self.policy('[permissions]\ndeny = ["delete_*"]\n')
        self.write("tests.toml", CASES)
        calls = [("delete_file", "deny"), ("push", "allow"), ("read_file", "allow")]
        lines = [{"v": 1, "tool": tool, "server": "git", "arguments": {}, "decision": made} for tool, made in calls]
        self.write("audit.jsonl", "".join(json.dumps(line | {"id": 1, "result": "ok"}) + "\n" for line in lines))
        self.git("add", ".")
        self.git("commit", "-qm", "base")
        self.base = self.git("rev-parse", "HEAD").strip()

    def git(self, *words: str) -> str:
        name = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        return subprocess.run(
            ["git", *name, *words], cwd=self.work, check=True, capture_output=True, encoding="utf-8"
        ).stdout

    def write(self, name: str, text: str) -> None:
        (self.work / name).write_text(text, "utf-8")

    def policy(self, text: str) -> None:
        self.write("hookproxy.toml", text)

    def run(self, part: str = "check", **more: str) -> subprocess.CompletedProcess[str]:
        event = self.runner / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7, "base": {"sha": self.base}}}))
        files = {name: str(self.runner / name) for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        env = {
            "PATH": os.environ["PATH"],
            "GITHUB_WORKSPACE": str(self.work),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_EVENT_NAME": "pull_request",
            **files,
            **more,
        }
        return subprocess.run(
            [sys.executable, "-I", SCRIPT, part],
            env=env,
            cwd=self.work,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )

    @property
    def report(self) -> str:
        return (self.work / "hookproxy-report.md").read_text("utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.mark.slow
def test_it_names_the_recorded_calls_that_a_change_decides_otherwise(repository: Repository) -> None:
    repository.policy('[permissions]\ndeny = ["delete_*", "push"]\n')
    ended = repository.run(INPUT_AUDIT="audit.jsonl", INPUT_ALLOW_WARNINGS="true")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "**test**: passed" in repository.report
    assert "1 call is decided otherwise" in repository.report
    assert "line 2: push of git: allow -> deny, by the permission rule push" in repository.report
    assert (repository.runner / "GITHUB_OUTPUT").read_text() == "differences=1\n"
    assert repository.report in (repository.runner / "GITHUB_STEP_SUMMARY").read_text()
    assert repository.git("worktree", "list").count("\n") == 1


@pytest.mark.slow
def test_a_case_that_fails_fails_the_job(repository: Repository) -> None:
    repository.policy('[permissions]\ndeny = ["push"]\n')
    ended = repository.run(INPUT_ALLOW_WARNINGS="true")
    assert ended.returncode == 1
    assert "**test**: failed" in repository.report
    assert "a delete" in repository.report


@pytest.mark.slow
def test_a_hook_of_the_pull_request_reaches_nothing_of_the_runner(repository: Repository) -> None:
    hook = "env >env.txt; echo '::set-output name=x::y'; echo '```` [a](http://b) @all' >&2; exit 2"
    repository.write("hook.sh", hook)
    repository.policy('[permissions]\ndeny = ["delete_*"]\n[[hooks.PreToolUse]]\ncommand = "sh hook.sh"\n')
    ended = repository.run(
        INPUT_AUDIT="audit.jsonl", INPUT_ALLOW_WARNINGS="true", GITHUB_TOKEN="t0ken", SECRET="s3cret"
    )
    assert "push of git: allow -> deny" in repository.report
    seen = (repository.work / "env.txt").read_text()
    assert not any(word in seen for word in ("t0ken", "s3cret", "GITHUB", "INPUT_"))
    outside = re.sub(r"::stop-commands::(\w+)\n.*?\n::\1::", "", ended.stdout, flags=re.DOTALL)
    assert "set-output" not in outside
    assert repository.report.count("````") % 2 == 0
    assert not (repository.runner / "GITHUB_ENV").exists()


@pytest.mark.slow
def test_calls_that_a_change_takes_out_of_the_record_are_compared_all_the_same(repository: Repository) -> None:
    repository.policy('[permissions]\ndeny = ["delete_*", "push"]\n')
    for record in ("", None):
        (repository.work / "audit.jsonl").unlink() if record is None else repository.write("audit.jsonl", record)
        ended = repository.run(INPUT_AUDIT="audit.jsonl", INPUT_ALLOW_WARNINGS="true")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "1 call is decided otherwise, of 3" in repository.report
        assert "The audit file of this change lacks some of them." in repository.report


@pytest.mark.slow
def test_calls_that_a_change_adds_to_the_record_are_compared_too(repository: Repository) -> None:
    repository.policy('[permissions]\ndeny = ["delete_*", "pull"]\n')
    line = {"v": 1, "tool": "pull", "server": "git", "arguments": {}, "decision": "allow", "id": 1, "result": "ok"}
    before = (repository.work / "audit.jsonl").read_text()
    repository.write("audit.jsonl", f"{before}{json.dumps(line)}\n")
    repository.run(INPUT_AUDIT="audit.jsonl", INPUT_ALLOW_WARNINGS="true")
    assert "line 4: pull of git: allow -> deny" in repository.report
    assert "lacks some" not in repository.report


@pytest.mark.slow
def test_a_record_without_calls_is_no_proof_that_nothing_changes(repository: Repository) -> None:
    repository.write("audit.jsonl", "")
    repository.git("commit", "-qam", "empty")
    repository.base = repository.git("rev-parse", "HEAD").strip()
    repository.policy('[permissions]\nask = ["delete_*"]\n')
    repository.run(INPUT_AUDIT="audit.jsonl")
    assert "**recorded calls**: not compared, the audit file has none" in repository.report


@pytest.mark.parametrize(
    "change",
    ["rm hookproxy.toml", ": >hookproxy.toml", "echo '[x' >hookproxy.toml"],
)
@pytest.mark.slow
def test_a_report_is_always_that_of_this_run(repository: Repository, change: str) -> None:
    repository.write("hookproxy-report.md", "<!-- hookproxy: report -->\n## hookproxy\nall is fine\n")
    repository.git("add", ".")
    repository.git("commit", "-qm", "a forged report")
    repository.write("audit.jsonl", "{}\n")
    subprocess.run(["/bin/sh", "-c", change], cwd=repository.work, check=True)
    ended = repository.run(INPUT_AUDIT="audit.jsonl")
    assert ended.returncode != 0
    assert "all is fine" not in repository.report
    assert "**check**: " in repository.report


def test_a_report_is_never_written_through_a_link(repository: Repository) -> None:
    for target in ("hookproxy.toml", str(repository.runner / "elsewhere")):
        link = repository.work / "hookproxy-report.md"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        repository.run()
        assert "deny" in (repository.work / "hookproxy.toml").read_text()
        assert not link.is_symlink()
        assert repository.report.startswith("<!-- hookproxy: report -->")
    assert not (repository.runner / "elsewhere").exists()


@pytest.mark.slow
def test_that_there_are_no_cases_stands_in_the_report(repository: Repository) -> None:
    (repository.work / "tests.toml").unlink()
    repository.run()
    assert "**test**: not run, because there are no cases beside the policy" in repository.report


@pytest.mark.slow
def test_a_link_is_no_option(repository: Repository) -> None:
    (repository.work / "--junit=.").mkdir()
    repository.write("--junit=./written", CASES)
    (repository.work / "cases.toml").symlink_to("--junit=./written")
    ended = repository.run(INPUT_TESTS="cases.toml")
    assert ended.returncode == 2
    assert "is not a path in the repository" in ended.stderr
    assert not (repository.work / "written").exists()


@pytest.mark.parametrize(
    "inputs",
    [
        {"INPUT_CONFIG": "$(touch pwned)"},
        {"INPUT_CONFIG": "x; touch pwned #"},
        {"INPUT_CONFIG": "../../etc/passwd"},
        {"INPUT_CONFIG": "/etc/passwd"},
        {"INPUT_CONFIG": "--help"},
        {"INPUT_TESTS": "tests.toml\n`touch pwned`"},
        {"INPUT_TESTS": "--junit=pwned"},
        {"INPUT_AUDIT": "$(touch pwned)"},
        {"INPUT_AUDIT": "link.jsonl"},
        {"INPUT_REPORT": "../pwned"},
    ],
    ids=str,
)
@pytest.mark.slow
def test_no_input_is_more_than_a_path_in_the_repository(repository: Repository, inputs: dict[str, str]) -> None:
    (repository.work / "link.jsonl").symlink_to("/etc/passwd")
    ended = repository.run(**inputs)
    assert ended.returncode != 0
    assert not (repository.work / "pwned").exists()
    assert not (repository.work.parent / "pwned").exists()
    assert "root:" not in ended.stdout


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run", "issue_comment"])
def test_it_refuses_events_with_rights(repository: Repository, event: str) -> None:
    ended = repository.run(GITHUB_EVENT_NAME=event)
    assert ended.returncode == 2
    assert "use pull_request" in ended.stderr


def test_without_the_base_commit_it_says_what_to_do(repository: Repository) -> None:
    repository.base = "0123456789" * 4
    ended = repository.run(INPUT_AUDIT="audit.jsonl", INPUT_ALLOW_WARNINGS="true")
    assert ended.returncode == 2
    assert "fetch-depth: 0" in ended.stderr


class _Api(BaseHTTPRequestHandler):
    requests: ClassVar[list[tuple[str, str, Any]]] = []
    there: ClassVar[list[dict[str, Any]]] = []

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.requests.append((self.command, self.path, json.loads(body) if body else None))
        answer = json.dumps(self.there if self.command == "GET" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def api() -> Iterator[str]:
    _Api.requests, _Api.there = [], []
    with HTTPServer(("127.0.0.1", 0), _Api) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_comment_takes_the_place_of_its_own_earlier_one(repository: Repository, api: str) -> None:
    report = "<!-- hookproxy: report -->\n## hookproxy\n````text\n````\n@all <img src=x>\n"
    repository.write("hookproxy-report.md", report)
    given = {"GITHUB_API_URL": api, "GITHUB_REPOSITORY": "o/r", "GITHUB_TOKEN": "t"}
    mark = "<!-- hookproxy: report -->"
    others = [{"id": 1, "body": mark, "user": {"type": "User"}}, {"id": 2, "body": "x", "user": {"type": "Bot"}}]
    for there, expected in ((others, "POST"), ([*others, {"id": 3, "body": mark, "user": {"type": "Bot"}}], "PATCH")):
        _Api.there, _Api.requests = there, _Api.requests[:0]
        ended = repository.run("comment", **given)
        assert ended.returncode == 0, ended.stderr
        _, (method, path, body) = _Api.requests
        assert method == expected
        assert path.startswith("/repos/o/r/issues/" + ("7/comments" if expected == "POST" else "comments/3"))
        assert body["body"].startswith(f"{mark}\n````text\n")
        assert body["body"].count("````") == 2, "nothing in the report ends the block"


def test_comments_without_a_text_or_an_author_are_nobodys(repository: Repository, api: str) -> None:
    repository.write("hookproxy-report.md", "<!-- hookproxy: report -->\n")
    _Api.there = [{"id": 1, "body": None, "user": {"type": "Bot"}}, {"id": 2, "body": "x", "user": None}]
    ended = repository.run("comment", GITHUB_API_URL=api, GITHUB_REPOSITORY="o/r", GITHUB_TOKEN="t")
    assert ended.returncode == 0, ended.stderr
    assert _Api.requests[-1][0] == "POST"


def test_a_file_that_is_no_report_is_not_commented(repository: Repository, api: str) -> None:
    repository.write("hookproxy-report.md", "anything")
    ended = repository.run("comment", GITHUB_API_URL=api, GITHUB_REPOSITORY="o/r")
    assert ended.returncode == 2
    assert not _Api.requests


# --- the steps, as a runner plays them ---

SERVER: Final = """
import json, sys
TOOLS = [{"name": "delete_file", "description": "x", "inputSchema": {"type": "object"}}]
VERSION = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
for line in sys.stdin:
    message = json.loads(line)
    result = {"initialize": VERSION, "tools/list": {"tools": TOOLS}}.get(message["method"], {})
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
AGENT: Final = {"mcpServers": {"git": {"command": "python3", "args": ["server.py"]}}}
PYTHON: Final = f"""#!/bin/sh
# What actions/setup-python puts into PATH; an environment that it makes has hookproxy in it, as pip would have left it.
case "$*" in
"-I -m venv "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
"-I -m pip "*) echo "$@" >>"$RUNNER_TEMP/pip.txt" ;;
*) exec {sys.executable} "$@" ;;
esac
"""


class Runner:
    """Plays the steps of the composite action with bash, in order, as GitHub's runner does."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.folder = repository.runner
        self.printed = ""
        (self.folder / "bin").mkdir()
        python = self.folder / "bin" / "python"
        python.write_text(PYTHON, "utf-8")
        python.chmod(0o755)

    def play(self, inputs: dict[str, str], **more: str) -> int:
        """Run the steps of a mode. Returns the exit status of the last one that ran."""
        event = self.folder / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7, "base": {"sha": self.repository.base}}}))
        given = {name: entry["default"] for name, entry in ACTION["inputs"].items()} | inputs
        names = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        runners = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(self.repository.work),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_EVENT_NAME": "pull_request",
            **{name: str(self.folder / name) for name in names},
            **more,
        }
        status = 0
        for step in STEPS:
            if "run" not in step or (given["mode"] == "comment") != ("==" in step["if"]):
                continue
            script = self.folder / "step.sh"
            script.write_text(step["run"], "utf-8")
            env = runners | {name: self._filled(text, given) for name, text in step.get("env", {}).items()}
            ended = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
                env=env,
                cwd=self.repository.work,
                capture_output=True,
                encoding="utf-8",
                timeout=120,
            )
            self.printed += ended.stdout + ended.stderr
            if status := ended.returncode:
                break
        return status

    @staticmethod
    def _filled(text: str, given: dict[str, str]) -> str:
        values = {f"inputs.{name}": value for name, value in given.items()} | {"github.token": "t0ken"}
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: values[match[1]], text)


@pytest.mark.slow
def test_its_steps_check_test_compare_with_the_lock_and_comment(repository: Repository, api: str) -> None:
    runner = Runner(repository)
    repository.write("server.py", SERVER)
    repository.write(".mcp.json", json.dumps(AGENT))
    lock = [sys.executable, "-I", "-m", "hookproxy", "lock"]
    subprocess.run(lock, cwd=repository.work, env={"PATH": os.environ["PATH"], "HOME": str(runner.folder)}, check=True)
    inputs = {"lock": "true", "audit": "audit.jsonl", "allow-warnings": "true"}
    assert runner.play(inputs) == 0, runner.printed
    assert (runner.folder / "pip.txt").read_text() == f"-I -m pip install --quiet {ROOT}\n"
    for title in ("check", "test", "lock --check"):
        assert f"**{title}**: passed" in repository.report
    assert "all 3 are decided as before" in repository.report

    repository.write("server.py", SERVER.replace('"x"', '"reads mail first"'))
    assert runner.play(inputs) == 1
    assert "**lock --check**: failed, status 1" in repository.report
    assert "git: tool delete_file: description" in repository.report
    assert (runner.folder / "GITHUB_OUTPUT").read_text() == "differences=0\n" * 2

    assert runner.play({"mode": "comment"}, GITHUB_API_URL=api, GITHUB_REPOSITORY="o/r") == 0, runner.printed
    assert [method for method, _, _ in _Api.requests] == ["GET", "POST"]
    assert "description" in _Api.requests[1][2]["body"]
    assert "t0ken" not in runner.printed + _Api.requests[1][2]["body"]


@pytest.mark.slow
def test_a_lock_that_is_not_committed_fails_the_job_and_says_what_makes_it(repository: Repository) -> None:
    runner = Runner(repository)
    repository.write(".mcp.json", json.dumps(AGENT))
    assert runner.play({"lock": "true"}) == 1
    assert "hint: hookproxy lock makes it" in repository.report
