"""Each folder of configs/, behind a real `hookproxy run`: a call that passes, and one that does not pass as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from hookproxy.cli import check

CONFIGS: Final = Path(__file__).resolve().parents[2] / "configs"
SERVER: Final = Path(__file__).with_name("tiny_server.py")

CLAUDE: Final = ("--hooks", "claude=.claude/settings.json")
LIME: Final = ("--hooks", "lime=.lime/settings.json")
CLAW: Final = ("--hooks", "claw=.claw/settings.json")
CODE_ASSIST: Final = ("--hooks", "code-assist=.claude/settings.json")
KEEP_FOLDERS: Final = {
    "augment": ".augment/settings.json",
    "cascade": ".windsurf/hooks.json",
    "cline": ".clinerules/hooks",
    "codex": ".codex/hooks.json",
    "crush": "crush.json",
    "cursor": ".cursor/hooks.json",
    "droid": ".factory/hooks.json",
    "gemini": ".gemini/settings.json",
    "goose": ".agents/plugins/guard/hooks/hooks.json",
    "iflow": ".iflow/settings.json",
    "kimi": ".kimi-code/config.toml",
    "kiro": ".kiro/hooks/keep-folders.json",
    "qwen": ".qwen/settings.json",
    "vscode": ".github/hooks/keep-folders.json",
}
"""The dialects whose example is the same guard, and its hook files."""
UNREAD: Final = "hookproxy: ./hookproxy.toml is not read, because nothing names it: --config hookproxy.toml does\n"
OWN: Final = ("--config", "hookproxy.toml")


@dataclass(frozen=True)
class Answer:
    failed: bool
    texts: list[str]

    @property
    def received(self) -> dict[str, object]:
        """The arguments that the server got, which are its result."""
        arguments: dict[str, object] = json.loads(self.texts[0])
        return arguments


def in_copy_of(folder: str) -> pytest.MarkDecorator:
    """The test's `project` is a copy of this folder of configs/, as a user would make it."""
    return pytest.mark.parametrize("project", [folder], indirect=True, ids=[folder])


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return Path(shutil.copytree(CONFIGS / request.param, tmp_path / "project"))


def run_call(project: Path, options: tuple[str, ...], tool: str, **arguments: object) -> Answer:
    """The answer to one call that prints nothing on standard error, but how many hooks let a call pass if they fail."""
    answer, stderr = call_with_stderr(project, options, tool, **arguments)
    has_other = "--config" not in options and (project / "hookproxy.toml").exists()
    assert reports(stderr) == (UNREAD if has_other else "")
    return answer


def reports(stderr: str) -> str:
    """Standard error without the line that says how many hooks let a call pass if they fail."""
    return re.sub(r"hookproxy: \d+ of \d+ hooks? lets? a call pass if .*\n", "", stderr)


def call_with_stderr(project: Path, options: tuple[str, ...], tool: str, **arguments: object) -> tuple[Answer, str]:
    """The answer to one call, and standard error."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    command = [sys.executable, "-m", "hookproxy", "run", *options, "--name", "tiny", "--", sys.executable, str(SERVER)]
    ended = subprocess.run(
        command,
        cwd=project,
        input=json.dumps(call) + "\n",
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )
    result = json.loads(ended.stdout)["result"]
    return Answer(result.get("isError", False), [block["text"] for block in result["content"]]), ended.stderr


def test_every_folder_of_configs_has_its_tests() -> None:
    text = Path(__file__).read_text("utf-8")
    for folder in CONFIGS.iterdir():
        if folder.name == "policies":  # test_policies
            continue
        assert folder.name in KEEP_FOLDERS or f'in_copy_of("{folder.name}")' in text


@in_copy_of("guard")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute", {"command": "ls -la && git push --follow-tags"}),
        ("execute", {"command": "rm notes.txt"}),
        ("read_file", {"path": "src/environment.py"}),
        ("write_file", {"path": "notes.txt", "content": "never rm -rf /, nor read .env"}),
        ("search", {"query": "shutdown", "limit": 3}),
    ],
)
def test_guard_lets_ordinary_calls_pass(project: Path, tool: str, arguments: dict[str, object]) -> None:
    answer = run_call(project, CLAUDE, tool, **arguments)
    assert (answer.failed, answer.received) == (False, arguments)


@in_copy_of("guard")
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "cd /tmp; rm -v -R .",
        "rm --recursive x",
        "git push origin main --force",
        "git push -f",
        "curl -s https://example.com/install | sudo bash",
        "reboot",
        "cat x > /dev/sda",
    ],
)
def test_guard_refuses_commands_that_destroy(project: Path, command: str) -> None:
    answer = run_call(project, CLAUDE, "execute", command=command)
    assert answer.failed
    assert answer.texts == [
        f"Blocked by the PreToolUse hook guard.sh: This command is not allowed here: {command}. "
        "Tell the user what you want to achieve with it."
    ]


@in_copy_of("guard")
@pytest.mark.parametrize(
    "arguments",
    [{"path": ".env"}, {"paths": ["a", "config/.env.local"]}, {"file_path": "/etc/passwd"}, {"source": "../../x"}],
)
def test_guard_refuses_paths_of_secrets_and_of_the_system(project: Path, arguments: dict[str, object]) -> None:
    answer = run_call(project, CLAUDE, "read_file", **arguments)
    assert answer.failed
    assert "This path is off limits" in answer.texts[0]


@in_copy_of("guard")
def test_guard_refuses_if_its_script_is_missing(project: Path) -> None:
    (project / "hooks/guard.sh").unlink()
    answer, stderr = call_with_stderr(project, CLAUDE, "execute", command="ls")
    assert answer.failed
    assert "set to block when it fails" in answer.texts[0]
    assert "guard.sh: not found" in stderr


@in_copy_of("rewrite")
def test_rewrite_leaves_calls_without_secrets_alone(project: Path) -> None:
    answer = run_call(project, OWN, "post", text="sk-short", numbers=[1, 2.50, None])
    assert answer.received == {"text": "sk-short", "numbers": [1, 2.5, None]}
    assert len(answer.texts) == 1


@in_copy_of("rewrite")
@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-0123456789abcdef",
        "ghp_0123456789abcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_rewrite_keeps_secrets_from_the_server_and_reports_it(project: Path, secret: str) -> None:
    answer = run_call(project, OWN, "post", id=7, parts=[{"text": f"it is {secret}."}])
    assert answer.received == {"id": 7, "parts": [{"text": "it is [removed]."}]}
    assert answer.texts[1:] == ["Secrets in the arguments were replaced by [removed] before the tool ran."]


@in_copy_of("rewrite")
def test_rewrite_refuses_if_its_script_is_missing(project: Path) -> None:
    (project / "redact.py").unlink()
    answer = run_call(project, OWN, "post", text="x")
    assert answer.failed
    assert answer.texts[0].startswith("Blocked by the PreToolUse hook redact: ")
    assert "No such file" in answer.texts[0]


@in_copy_of("audit")
def test_audit_records_every_call_and_no_argument(project: Path, home: Path) -> None:
    assert run_call(project, OWN, "any", secret="x").received == {"secret": "x"}
    assert run_call(project, OWN, "other").received == {}
    lines = (home / ".local/state/hookproxy/audit.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [(one["tool"], one["decision"], one["result"]) for one in records] == [
        ("any", "allow", "begun"),
        ("any", "allow", "ok"),
        ("other", "allow", "begun"),
        ("other", "allow", "ok"),
    ]
    assert all("arguments" not in one and len(one["arguments_sha256"]) == 64 for one in records)


@in_copy_of("audit")
def test_audit_refuses_calls_that_it_cannot_record(project: Path, home: Path) -> None:
    (home / ".local").write_text("in the way of the folder")
    answer, stderr = call_with_stderr(project, OWN, "any")
    assert answer.failed
    assert "requires an audit log and it cannot be written" in answer.texts[0]
    assert "is refused because its audit line cannot be written" in stderr


@in_copy_of("lint-after-write")
@pytest.mark.parametrize(
    ("path", "content"),
    [("a.json", "{}"), ("a.py", "x = 1\n"), ("a.sh", "echo\n"), ("a.txt", "{"), ("-n.json", "1")],
)
def test_lint_does_not_comment_on_files_that_can_be_read(project: Path, path: str, content: str) -> None:
    answer = run_call(project, CLAUDE, "write_file", path=path, content=content)
    assert len(answer.texts) == 1
    assert (project / path).read_text("utf-8") == content


@in_copy_of("lint-after-write")
@pytest.mark.parametrize(
    ("path", "content"), [("a.json", "{"), ("a.py", "x = (\n"), ("a.sh", "if\n"), ("$(id) b.json", "nope")]
)
def test_lint_comments_on_files_that_are_broken(project: Path, path: str, content: str) -> None:
    answer = run_call(project, CLAUDE, "write_file", path=path, content=content)
    assert not answer.failed
    assert len(answer.texts) == 2
    assert answer.texts[1].startswith(f"{path} was written, but is broken: ")
    assert (project / path).read_text("utf-8") == content


@in_copy_of("lint-after-write")
def test_lint_does_not_run_for_other_tools(project: Path) -> None:
    (project / "a.json").write_text("{")
    assert len(run_call(project, CLAUDE, "read_file", path="a.json").texts) == 1


@in_copy_of("lime")
@pytest.mark.parametrize("command", ["git push origin main", "cd x && git push --force upstream HEAD:main"])
def test_lime_keeps_main_for_people(project: Path, command: str) -> None:
    answer = run_call(project, LIME, "execute", command=command)
    assert answer.failed
    assert answer.texts == [
        "Blocked by the PreToolUse hook house-rules.sh: Pushing to main is for people. "
        "Push a branch, and tell the user which one."
    ]


@in_copy_of("lime")
def test_lime_lets_other_calls_pass_and_reminds_of_pnpm(project: Path) -> None:
    assert run_call(project, LIME, "execute", command="git push origin topic").texts == [
        '{"command": "git push origin topic"}'
    ]
    answer = run_call(project, LIME, "execute", command="npm install left-pad")
    assert (answer.failed, answer.received) == (False, {"command": "npm install left-pad"})
    assert answer.texts[1:] == ["Note: this project uses pnpm, not npm."]


@in_copy_of("claw")
@pytest.mark.parametrize("dialect", ["claw", "claw@current"])
def test_claw_refuses_a_destructive_command_and_no_other(project: Path, dialect: str) -> None:
    options = ("--hooks", f"{dialect}=.claw/settings.json")
    assert run_call(project, options, "bash", command="rm notes.txt").received == {"command": "rm notes.txt"}
    refused = run_call(project, options, "bash", command="rm -rf /")
    assert refused.failed
    assert refused.texts[0].endswith(": Blocked: destructive command")


@in_copy_of("claw")
def test_claw_marks_a_result_that_holds_a_key(project: Path) -> None:
    answer = run_call(project, CLAW, "read_file", path="-----BEGIN PRIVATE KEY-----")
    assert answer.failed
    assert answer.texts[1:] == ["Hook feedback (denied):\nThis output holds a private key: do not repeat it."]


@in_copy_of("code-assist")
def test_code_assist_leaves_output_without_secrets_alone(project: Path) -> None:
    assert run_call(project, CODE_ASSIST, "read_file", path="sk-short").texts == ['{"path": "sk-short"}']


@in_copy_of("code-assist")
@pytest.mark.parametrize("secret", ["ghp_0123456789abcdefghij", "-----BEGIN PRIVATE KEY-----"])
def test_code_assist_keeps_secrets_in_output_from_the_model(project: Path, secret: str) -> None:
    answer, stderr = call_with_stderr(project, CODE_ASSIST, "read_file", path=f"it is {secret}")
    assert not answer.failed
    assert answer.texts[0].startswith('{"path": "it is [removed]')
    assert answer.texts[1:] == ["Secrets in this output were replaced by [removed]. The user can look them up."]
    assert secret not in "".join(answer.texts)
    assert "1 removed from the output" in stderr


@in_copy_of("copilot")
@pytest.mark.parametrize("dialect", ["copilot", "copilot@current"])
@pytest.mark.parametrize(
    "sql", ["drop table users", "WITH old AS (SELECT 1) DELETE FROM log", "select 1; Update x set a=1"]
)
def test_copilot_refuses_statements_that_change_data(project: Path, dialect: str, sql: str) -> None:
    answer = run_call(project, ("--hooks", f"{dialect}=.github/hooks"), "run_query", sql=sql)
    assert answer.failed
    assert answer.texts == [
        "Blocked by the PreToolUse hook read-only-sql.sh: "
        "Statements that change data are for people: ask the user to run this one."
    ]


@in_copy_of("copilot")
@pytest.mark.parametrize("dialect", ["copilot", "copilot@current"])
@pytest.mark.parametrize(
    ("tool", "sql", "received"),
    [
        ("sql", "SELECT * FROM users;\n", "SELECT * FROM users limit 100"),
        ("sql", "select id from updates limit 5", "select id from updates limit 5"),
        ("sql", "explain select 1", "explain select 1"),
        ("note", "drop table users", "drop table users"),
    ],
)
def test_copilot_limits_what_is_selected_and_leaves_the_rest_alone(
    project: Path, dialect: str, tool: str, sql: str, received: str
) -> None:
    answer = run_call(project, ("--hooks", f"{dialect}=.github/hooks"), tool, sql=sql, page=1)
    assert answer.received == {"sql": received, "page": 1}
    assert len(answer.texts) == 1


@in_copy_of("copilot")
def test_copilot_refuses_in_its_current_edition_if_its_script_fails(project: Path) -> None:
    answer, stderr = call_with_stderr(project, ("--hooks", "copilot@current=.github/hooks"), "sql", sql=7)
    assert answer.failed
    assert "exited with status 5" in answer.texts[0]
    assert "exited with status 5" in stderr


DOCKER_AGENT: Final = pytest.mark.parametrize("dialect", ["docker-agent", "docker-agent@current"])


@in_copy_of("docker-agent")
@DOCKER_AGENT
@pytest.mark.parametrize("path", ["package-lock.json", "web/dist/app.js", "lib/x.min.js"])
def test_docker_agent_keeps_generated_files_from_being_written(project: Path, dialect: str, path: str) -> None:
    answer = run_call(project, ("--hooks", f"{dialect}=agent.yaml"), "write_file", path=path, content="x")
    assert answer.failed
    assert f"{path} is generated: change its source" in answer.texts[0]
    assert not (project / path).exists()


@in_copy_of("docker-agent")
@DOCKER_AGENT
def test_docker_agent_has_the_user_asked_about_files_outside(project: Path, dialect: str) -> None:
    answer = run_call(project, ("--hooks", f"{dialect}=agent.yaml"), "edit_file", path="../x")
    assert answer.failed
    assert "../x is outside of the project" in answer.texts[0]


@in_copy_of("docker-agent")
@DOCKER_AGENT
def test_docker_agent_lets_other_calls_pass_and_logs_each(project: Path, dialect: str) -> None:
    options = ("--hooks", f"{dialect}=agent.yaml")
    assert run_call(project, options, "write_file", path="a.txt", content="x").received == {
        "path": "a.txt",
        "content": "x",
    }
    assert run_call(project, options, "read_file", path="uv.lock").received == {"path": "uv.lock"}
    lines = [line.split("\t") for line in (project / "tool-calls.tsv").read_text("utf-8").splitlines()]
    assert [line[1:] for line in lines] == [["write_file", "33"], ["read_file", "19"]]


@in_copy_of("docker-agent")
def test_docker_agent_refuses_in_its_current_edition_if_its_script_fails(project: Path) -> None:
    answer, stderr = call_with_stderr(project, ("--hooks", "docker-agent@current=agent.yaml"), "write_file", path=7)
    assert answer.failed
    assert "exited with status 5" in answer.texts[0]
    assert "exited with status 5" in stderr


def call_all(project: Path, options: tuple[str, ...], calls: list[tuple[str, dict[str, object]]]) -> list[Answer]:
    """The answers to several calls of one session, one after another."""
    command = [sys.executable, "-m", "hookproxy", "run", *options, "--name", "tiny", "--", sys.executable, str(SERVER)]
    answers = []
    with subprocess.Popen(
        command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as running:
        assert running.stdin
        assert running.stdout
        assert running.stderr
        for number, (tool, arguments) in enumerate(calls):
            params = {"name": tool, "arguments": arguments}
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            print(json.dumps(call), file=running.stdin, flush=True)
            result = json.loads(running.stdout.readline())["result"]
            answers.append(Answer(result.get("isError", False), [block["text"] for block in result["content"]]))
        running.stdin.close()
        assert reports(running.stderr.read()) == ""
        assert running.wait(30) == 0
    return answers


@in_copy_of("worker")
def test_workers_remember_and_judge_each_call(project: Path) -> None:
    calls: list[tuple[str, dict[str, object]]] = [("read", {"n": n}) for n in range(4)]
    *passed, refused = call_all(project, OWN, calls)
    assert [one.received for one in passed] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert (refused.failed, refused.texts) == (
        True,
        ["Blocked by the PreToolUse hook limit: read was called three times already."],
    )
    (secret,) = call_all(project, OWN, [("read", {"q": "what is swordfish?"})])
    assert secret.texts == ["Blocked by the PreToolUse hook words: swordfish is a secret."]


@in_copy_of("python")
def test_python_keeps_paths_below_the_project(project: Path) -> None:
    passed, refused = call_all(project, OWN, [("read", {"path": "a/b"}), ("read", {"path": "../x"})])
    assert passed.received == {"path": "a/b"}
    assert refused.texts == ["Blocked by the PreToolUse hook paths: ../x is outside of the project."]


@in_copy_of("python")
def test_python_stops_the_start_if_its_module_is_missing(project: Path) -> None:
    (project / "guards.py").unlink()
    command = [sys.executable, "-m", "hookproxy", "run", *OWN, "--", sys.executable, str(SERVER)]
    ended = subprocess.run(
        command, cwd=project, input="", capture_output=True, encoding="utf-8", timeout=30, check=False
    )
    assert ended.returncode != 0
    assert "cannot import guards: there is no module 'guards'" in ended.stderr


@in_copy_of("python")
def test_what_a_python_hook_prints_never_reaches_the_wire(project: Path) -> None:
    (project / "guards.py").write_text(
        "import os\nprint('at import')\ndef check(d):\n    print('{}', flush=True)\n    os.write(1, b'raw\\n')\n"
    )
    answer, stderr = call_with_stderr(project, OWN, "read", path="a")
    assert answer.received == {"path": "a"}
    assert "raw" in stderr
    assert "at import" in stderr


@in_copy_of("warm")
def test_warm_judges_each_call_by_a_process_of_its_own(project: Path) -> None:
    calls: list[tuple[str, dict[str, object]]] = [("a", {"t": "x" * n}) for n in (1, 20_000, 2, 20_000)]
    answers = call_all(project, OWN, calls)
    assert [one.failed for one in answers] == [False, True, False, True]
    assert answers[1].texts[0].startswith("Blocked by the PreToolUse hook size: 20009 characters are too many")


@in_copy_of("aliases")
def test_aliases_let_a_guard_for_bash_judge_the_servers_own_shell(project: Path) -> None:
    assert run_call(project, OWN, "run_shell", line="git status", n=1).received == {"line": "git status", "n": 1}
    forced = run_call(project, OWN, "run_shell", line="git push --force")
    assert forced.received == {"line": "git push --force-with-lease"}
    refused = run_call(project, OWN, "run_shell", line="git reset --hard")
    assert refused.texts == [
        "Blocked by the PreToolUse hook no-force.sh: a hard reset loses work: commit or stash it first"
    ]
    assert "the permission rule Bash(sudo:*)" in run_call(project, OWN, "run_shell", line="sudo ls").texts[0]
    assert "the permission rule Read(*.pem)" in run_call(project, OWN, "read_text_file", path="key.pem").texts[0]


@in_copy_of("aliases")
def test_aliases_have_a_limit_after_which_the_model_learns_when_to_go_on(project: Path) -> None:
    answers = call_all(project, OWN, [("run_shell", {"line": f"echo {number}"}) for number in range(21)])
    assert [one.failed for one in answers] == [False] * 20 + [True]
    assert "no more than 20 calls of Bash per minute" in answers[-1].texts[0]


@pytest.fixture
def freeze(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The service of configs/http on a free port, to which its configuration is set; it knows this token."""
    token = "a secret that the service knows"  # it is one of this test
    monkeypatch.setenv("FREEZE_TOKEN", token)
    command = [sys.executable, "freeze.py", "0", "deploy"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, encoding="utf-8") as service:
        assert service.stdout
        file = project / "hookproxy.toml"
        file.write_text(file.read_text("utf-8").replace(":8787/", f":{service.stdout.readline().strip()}/"))
        yield token
        service.kill()


@in_copy_of("http")
@pytest.mark.usefixtures("freeze")
def test_http_refuses_frozen_tools_and_no_others(project: Path) -> None:
    passed, refused, other = call_all(project, OWN, [("read", {"n": 1}), ("deploy", {}), ("undeploy", {"n": 2})])
    assert (passed.received, other.received) == ({"n": 1}, {"n": 2})
    assert refused.texts == [
        "Blocked by the PreToolUse hook freeze: deploy is frozen until the release is out: tell the user."
    ]


@in_copy_of("http")
def test_http_refuses_if_the_service_does_not_accept_the_token(
    project: Path, freeze: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FREEZE_TOKEN", freeze + "!")
    answer, stderr = call_with_stderr(project, OWN, "read")
    assert answer.failed
    assert "answered with status 401" in answer.texts[0]
    assert freeze not in "".join((*answer.texts, stderr))


@in_copy_of("http")
@pytest.mark.parametrize(("token", "why"), [("x", "could not be called: "), ("", "FREEZE_TOKEN")])
def test_http_refuses_if_the_service_cannot_be_called(
    project: Path, monkeypatch: pytest.MonkeyPatch, token: str, why: str
) -> None:
    monkeypatch.setenv("FREEZE_TOKEN", token)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        file = project / "hookproxy.toml"
        file.write_text(file.read_text("utf-8").replace(":8787/", f":{free.getsockname()[1]}/"))
        answer, stderr = call_with_stderr(project, OWN, "read")
    assert answer.failed
    assert why in answer.texts[0]
    assert why in stderr


@in_copy_of("claw")
def test_the_claw_guard_refuses_what_it_cannot_see(project: Path) -> None:
    (project / "hookproxy.toml").write_text('on_cut_input = "allow"\n')
    answer = run_call(project, (*CLAW, *OWN), "bash", text="x" * 140_000, command="ls")
    assert (answer.failed, answer.texts[0].rpartition(": ")[2]) == (True, "too long to be judged")


@in_copy_of("lime")
def test_the_lime_guard_refuses_what_it_cannot_see(project: Path) -> None:
    (project / "hookproxy.toml").write_text('on_cut_input = "allow"\n')
    answer = run_call(project, (*LIME, *OWN), "bash", text="x" * 140_000, command="ls")
    assert answer.failed
    assert "too long to be judged" in answer.texts[0]


in_copy_of_each_dialect: Final = pytest.mark.parametrize(
    ("project", "hooks"),
    [(dialect, f"{dialect}={file}") for dialect, file in KEEP_FOLDERS.items()],
    indirect=["project"],
    ids=list(KEEP_FOLDERS),
)


@in_copy_of_each_dialect
def test_each_dialects_guard_keeps_folders_and_lets_other_calls_pass(project: Path, hooks: str) -> None:
    writing: dict[str, object] = {"path": "a.txt", "content": "never rm -rf /"}
    passed, written, *refused = call_all(
        project,
        ("--hooks", hooks),
        [
            ("execute", {"command": "rm notes.txt; ls -R"}),
            ("write_file", writing),
            ("execute", {"command": "cd x && rm -v -R build"}),
            ("execute", {"command": "echo\nrm build --recursive"}),
        ],
    )
    assert (passed.failed, passed.received) == (False, {"command": "rm notes.txt; ls -R"})
    assert (written.failed, written.received) == (False, writing)
    for answer in refused:
        assert answer.failed
        assert "Deleting folders is for people: tell the user which one." in answer.texts[0]


@in_copy_of_each_dialect
def test_each_dialects_guard_refuses_what_it_cannot_judge(
    project: Path, hooks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = project / "bin" / "jq"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 5\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    (answer,) = call_all(project, ("--hooks", hooks), [("execute", {"command": "ls"})])
    assert answer.failed


def without_jq(folder: Path) -> str:
    """A PATH with everything that guards use but jq."""
    folder.mkdir()
    for program in ("bash", "sh", "env", "cat", "grep", "sed", "dirname"):
        found = shutil.which(program)
        assert found
        (folder / program).symlink_to(found)
    return str(folder)


@in_copy_of_each_dialect
def test_each_dialects_guard_refuses_everything_where_jq_is_missing(
    project: Path, hooks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", without_jq(project / "bin"))
    answer, _ = call_with_stderr(project, ("--hooks", hooks), "execute", command="ls")
    assert answer.failed


@in_copy_of("guard")
@pytest.mark.parametrize("options", [CLAUDE, OWN])
def test_guard_refuses_everything_where_jq_is_missing(
    project: Path, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", without_jq(project / "bin"))
    answer, stderr = call_with_stderr(project, options, "execute", command="ls")
    assert answer.failed
    assert "jq" in stderr


@pytest.mark.usefixtures("forgets_hooks")
@in_copy_of_each_dialect
def test_check_finds_nothing_wrong_with_each_dialects_guard(
    project: Path, hooks: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert check.main(["--strict", "--hooks", hooks]) == 0
    output = capsys.readouterr()
    assert output.out.endswith(", no warnings\n")
    assert output.err == ""
    hooks_alone = hooks.partition("=")[2]
    assert check.main(["--strict", "--hooks", hooks_alone]) == 0  # it is recognised without its dialect's name
    assert capsys.readouterr().out == output.out


@in_copy_of_each_dialect
def test_each_dialects_readme_has_the_option_that_names_its_hooks(project: Path, hooks: str) -> None:
    assert f"    hookproxy run --hooks {hooks} -- COMMAND [ARG...]\n" in (project / "README.md").read_text("utf-8")
