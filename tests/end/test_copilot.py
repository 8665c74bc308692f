"""Copilot CLI's hook files in front of a real server: the reference's configurations, unchanged, and scripts for them.

The reference has no scripts of its own; these are like those that people publish for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.end.agent import PATIENCE, SERVER, Agent, Json, Scene, call, refused, request, text_of

BOTH = pytest.mark.parametrize("dialect", ["copilot", "copilot@current"])

COMMAND_HOOKS: Final = """\
{
"version": 1,
"hooks": {
"preToolUse": [
{
"type": "command",
"bash": "your-bash-command",
"powershell": "your-powershell-command",
"cwd": "optional/working/directory",
"env": { "VAR": "value" },
"timeoutSec": 30
}
]
}
}
"""  # verbatim: the reference's example of command hooks

PROMPT_HOOKS: Final = """\
{
"version": 1,
"hooks": {
"sessionStart": [
{
"type": "prompt",
"prompt": "Your prompt text or /slash-command"
}
]
}
}
"""  # verbatim: the reference's example of prompt hooks

GUARD: Final = """\
#!/bin/bash
# Denies dangerous shell commands.
set -euo pipefail

INPUT=$(cat)
TOOL_NAME=$(echo "$INPUT" | jq -r '.toolName')

if [[ "$TOOL_NAME" != "bash" ]]; then
  exit 0
fi

COMMAND=$(echo "$INPUT" | jq -r '.toolArgs | fromjson | .command // empty')

BLOCKED=('rm -rf' 'sudo' 'mkfs' 'git push --force')
for pattern in "${BLOCKED[@]}"; do
  if [[ "$COMMAND" == *"$pattern"* ]]; then
    jq -nc --arg reason "Blocked by policy: '$pattern' is not allowed" \\
      '{permissionDecision: "deny", permissionDecisionReason: $reason}'
    exit 0
  fi
done
"""

GUARD_FOR_VS_CODE: Final = """\
#!/bin/bash
INPUT=$(cat)
COMMAND=$(jq -r 'select(.hook_event_name == "PreToolUse") | .tool_input.command // empty' <<<"$INPUT")
if grep -qE '(^|[;&| ])(rm|sudo) ' <<<"$COMMAND"; then
  echo '{"permissionDecision":"deny","permissionDecisionReason":"Not from here."}'
else
  echo '{"permissionDecision":"allow"}'
fi
"""

LOG_RESULT: Final = """\
#!/bin/bash
# Appends each result to a CSV file.
jq -r '[.timestamp, .sessionId, .toolName, (.toolArgs | fromjson | .command), .toolResult.resultType,
        .toolResult.textResultForLlm] | @csv' >> "$LOG_DIR/results.csv"
echo "logged"
"""

RECOVER: Final = """\
#!/bin/bash
# Tells the model how to go on after a failure.
ERROR=$(jq -r '.error')
case "$ERROR" in
  *"command not found"*)
    echo "The program is not installed. Ask the user to install it; do not try other package managers." >&2
    exit 2 ;;
esac
exit 0
"""

APPROVE: Final = """\
#!/bin/bash
# Approves what only reads, and denies writes outside of the sources.
INPUT=$(cat)
case "$(jq -r '.toolName' <<<"$INPUT")" in
  view|grep|glob) echo '{"behavior":"allow"}' ;;
  *)
    PATH_GIVEN=$(jq -r '.toolArgs | fromjson | .path // empty' <<<"$INPUT")
    if [[ -n "$PATH_GIVEN" && "$PATH_GIVEN" != src/* ]]; then
      jq -nc --arg m "Only src/ may be written, not $PATH_GIVEN" '{behavior:"deny", message:$m}'
    fi ;;
esac
"""

DRY_RUN: Final = """\
#!/bin/bash
jq -c '.toolArgs | fromjson | select(.command | startswith("npm publish"))
       | {permissionDecision: "allow", modifiedArgs: (.command += " --dry-run")}'
"""


class Repository:
    """A repository with hooks, as a user has it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.root = scene.folder / "repo"
        self.hooks = self.root / ".github" / "hooks"
        self.hooks.mkdir(parents=True)

    def script(self, name: str, text: str) -> str:
        path = self.root / "scripts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o700)
        return f"./scripts/{name}"

    def prints(self, name: str, answer: Json) -> str:
        return self.script(name, f"#!/bin/sh\necho '{json.dumps(answer)}'\n")

    def file(self, hooks: Mapping[str, Sequence[str | Json]] | str, name: str = "guard.json") -> str:
        """A hook file; an entry that is only a command line is for bash."""
        if not isinstance(hooks, str):
            events = {event: [entry(one) for one in entries] for event, entries in hooks.items()}
            hooks = json.dumps({"version": 1, "hooks": events})
        (self.hooks / name).write_text(hooks)
        return str(self.hooks / name)

    async def run(self, *options: str, env: Mapping[str, str] | None = None) -> Agent:
        """A run after its handshake."""
        agent = self.scene.run("--name=lean", *options, server=SERVER, env=env)
        await agent.initialize()
        return agent

    async def with_hooks(self, dialect: str, hooks: Mapping[str, Sequence[str | Json]] | str) -> Agent:
        return await self.run(f"--hooks={dialect}={self.file(hooks)}")


def entry(one: str | Json) -> Json:
    return {"type": "command", "bash": one} if isinstance(one, str) else {"type": "command", **one}


@pytest.fixture
def repository(scene: Scene) -> Repository:
    return Repository(scene)


def fails_with(text: str) -> Json:
    """The arguments of the server's tool `reply` for a failed result."""
    return {"isError": True, "content": [{"type": "text", "text": text}]}


# --- the reference's own configurations ---


@BOTH
async def test_the_example_of_command_hooks_works_unchanged(repository: Repository, dialect: str) -> None:
    (repository.root / "optional/working/directory").mkdir(parents=True)
    record = f'#!/bin/bash\necho "$VAR $PWD" >>"{repository.root}/recorded"\n'
    path = Path(repository.root, repository.script("your-bash-command", record + GUARD.partition("\n")[2]))
    env = {"PATH": f"{path.parent}:{repository.scene.env['PATH']}"}
    agent = await repository.run(f"--hooks={dialect}={repository.file(COMMAND_HOOKS)}", env=env)
    text = refused(await agent.ask(call(1, "bash", command="sudo rm -rf /")))
    assert text == "Blocked by the PreToolUse hook your-bash-command: Blocked by policy: 'rm -rf' is not allowed"
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert [one["params"]["arguments"] for one in repository.scene.calls_received()] == [{"command": "ls"}]
    place = f"value {repository.root}/optional/working/directory\n"
    assert (repository.root / "recorded").read_text() == 2 * place


@BOTH
async def test_the_example_of_prompt_hooks_is_reported_as_impossible(repository: Repository, dialect: str) -> None:
    agent = await repository.with_hooks(dialect, PROMPT_HOOKS)
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "hooks.sessionStart[0] does not run: type 'prompt' is not supported" in agent.standard_error()


# --- scripts as people publish them ---


@BOTH
async def test_a_guard_denies_what_is_dangerous_and_lets_the_rest_run(repository: Repository, dialect: str) -> None:
    agent = await repository.with_hooks(dialect, {"preToolUse": [repository.script("guard.sh", GUARD)]})
    text = refused(await agent.ask(call(1, "bash", command="git push --force origin main")))
    assert "'git push --force' is not allowed" in text
    assert repository.scene.calls_received() == []
    assert text_of(await agent.ask(call(2, "bash", command="git status"))) == "ran bash"
    assert text_of(await agent.ask(call(3, "view", text="sudo"))) == "ran view"
    assert "'sudo' is not allowed" in refused(await agent.ask(call(4, "run_it", command="sudo ls")))  # a shell, too


async def test_a_guard_is_not_deceived_by_escapes(repository: Repository) -> None:
    agent = await repository.with_hooks("copilot", {"preToolUse": [repository.script("guard.sh", GUARD)]})
    line = r'{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"\u0062ash","arguments":%s}}'
    await agent.send((line % r'{"comm\u0061nd":"rm\u0020-rf \/"}' + "\n").encode())
    refused(await agent.answer(1))
    assert repository.scene.calls_received() == []


@BOTH
async def test_a_guard_in_the_format_of_vs_code(repository: Repository, dialect: str) -> None:
    agent = await repository.with_hooks(
        dialect, {"PreToolUse": [{"bash": repository.script("guard.sh", GUARD_FOR_VS_CODE), "matcher": "bash"}]}
    )
    assert refused(await agent.ask(call(1, "bash", command="ls; sudo ls"))).endswith(": Not from here.")
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert refused(await agent.ask(call(3, "bash_more", command="sudo ls"))).endswith(
        ": Not from here."
    )  # a shell, too
    assert text_of(await agent.ask(call(4, "bashful", text="sudo ls"))) == "ran bashful"


@BOTH
async def test_results_are_logged_and_left_alone(repository: Repository, dialect: str) -> None:
    log = {"bash": repository.script("log.sh", LOG_RESULT), "env": {"LOG_DIR": "$E2E_MARK"}}
    agent = await repository.with_hooks(dialect, {"postToolUse": [log]})
    assert text_of(await agent.ask(call(1, "bash", command="ls"))) == "ran bash"
    cells = (repository.scene.folder / "results.csv").read_text().strip().split(",")
    assert int(cells[0]) > 1_700_000_000_000
    assert cells[2:] == ['"bash"', '"ls"', '"success"', '"ran bash"']


@BOTH
async def test_a_failure_gets_recovery_guidance(repository: Repository, dialect: str) -> None:
    log, recover = repository.script("log.sh", LOG_RESULT), repository.script("recover.sh", RECOVER)
    agent = await repository.with_hooks(dialect, {"postToolUseFailure": [recover], "postToolUse": [log]})
    answer = await agent.ask(call(1, "reply", result=fails_with("bash: pnpm: command not found")))
    assert refused(answer).startswith("bash: pnpm: command not found\nThe program is not installed. Ask the user")
    assert refused(await agent.ask(call(2, "reply", result=fails_with("no such file")))) == "no such file"


@BOTH
async def test_arguments_are_substituted(repository: Repository, dialect: str) -> None:
    agent = await repository.with_hooks(dialect, {"preToolUse": [repository.script("dry.sh", DRY_RUN)]})
    await agent.ask(call(1, "bash", command="npm publish --tag next", cwd="/x"))
    await agent.ask(call(2, "bash", command="npm test"))
    assert [one["params"]["arguments"] for one in repository.scene.calls_received()] == [
        {"command": "npm publish --tag next --dry-run", "cwd": "/x"},
        {"command": "npm test"},
    ]


# --- the rules of the reference ---


@BOTH
async def test_hooks_run_in_order_and_any_denial_blocks(repository: Repository, dialect: str) -> None:
    deny = repository.prints("deny.sh", {"permissionDecision": "deny", "permissionDecisionReason": "R"})
    allow = repository.prints("allow.sh", {"permissionDecision": "allow", "modifiedArgs": {"a": 1}})
    ran = repository.root / "ran"
    agent = await repository.with_hooks(
        dialect,
        {
            "PreToolUse": [f"sleep 0.05; echo first >>'{ran}'", deny],
            "preToolUse": [f"echo second >>'{ran}'", f"echo third >>'{ran}'; {allow}"],
        },
    )
    assert refused(await agent.ask(call(1, "bash"))) == "Blocked by the PreToolUse hook deny.sh: R"
    assert repository.scene.calls_received() == []
    assert ran.read_text().split() == ["first", "second", "third"]


@pytest.mark.parametrize("command", ["echo no >&2; exit 2", "echo no >&2; exit 1", "./missing.sh", "kill -9 $$"])
async def test_failures_never_block(repository: Repository, command: str) -> None:
    agent = await repository.with_hooks("copilot", {"preToolUse": [command], "postToolUse": [command]})
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status" in agent.standard_error() or "was ended by signal SIGKILL" in agent.standard_error()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo 'no, never' >&2; exit 2", "Blocked by the PreToolUse hook echo: no, never"),
        ("echo no >&2; exit 1", "Denied by preToolUse hook (hook errored): exited with status 1: no"),
        ("./missing.sh", "Denied by preToolUse hook (hook errored): exited with status 127"),
        ("kill -9 $$", "Denied by preToolUse hook (hook errored): was ended by signal SIGKILL"),
    ],
)
async def test_in_the_current_edition_failures_before_a_call_deny(
    repository: Repository, command: str, expected: str
) -> None:
    agent = await repository.with_hooks("copilot@current", {"preToolUse": [command]})
    assert expected in refused(await agent.ask(call(1, "bash")))
    assert repository.scene.calls_received() == []


async def test_on_failure_overrides_the_current_edition(repository: Repository) -> None:
    file = repository.file({"preToolUse": ["exit 1"]})
    text = f'[[use]]\nfile = "{file}"\ndialect = "copilot@current"\non_trouble = "allow"\n'
    agent = await repository.run(repository.scene.config(text))
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"


@BOTH
async def test_timeouts_are_let_go(repository: Repository, dialect: str) -> None:
    gate = repository.scene.gate("hook")
    agent = await repository.with_hooks(dialect, {"preToolUse": [{"bash": gate.script, "timeoutSec": 0.2}]})
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "timed out after 0.2 s" in agent.standard_error()


@BOTH
async def test_hooks_are_run_by_bash_with_the_variables_of_copilot_only(repository: Repository, dialect: str) -> None:
    recorded = repository.root / "recorded"
    show = f'a=(x y); env >"{recorded}"; [[ ${{#a[@]}} == 2 ]] && echo "bash" >>"{recorded}"'
    file = repository.file({"preToolUse": [{"bash": show, "env": {"GREETING": "hi ${E2E_LOG}"}}]})
    env = {"CLAUDECODE": "1", "CURSOR_VERSION": "1", "HOOK_TOOL_NAME": "x"}
    agent = await repository.run(f"--hooks={dialect}={file}", env=env)
    await agent.ask(call(1, "bash"))
    lines = recorded.read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if "=" in line)
    assert lines[-1] == "bash"
    assert (variables["COPILOT_CLI"], variables["COPILOT_PROJECT_DIR"]) == ("1", str(repository.root))
    assert variables["PWD"] == str(repository.root)
    assert variables["COPILOT_AGENT_SESSION_ID"]
    assert variables["GREETING"] == f"hi {repository.scene.log}"
    assert not variables.keys() & {*env, "CLAUDE_PROJECT_DIR"}


async def test_tool_args_may_be_an_object(repository: Repository) -> None:
    recorded = repository.root / "recorded"
    file = repository.file({"preToolUse": [f"cat >'{recorded}'"]})
    text = f'[[use]]\nfile = "{file}"\ndialect = "copilot"\ntool_args = "object"\n'
    agent = await repository.run(repository.scene.config(text))
    await agent.ask(call(1, "bash", command="ls"))
    assert json.loads(recorded.read_text())["toolArgs"] == {"command": "ls"}


@pytest.mark.parametrize("where", [".github/hooks", ".github/hooks/*.json", ".github/hooks/a.json"])
async def test_a_folder_a_pattern_and_a_file_of_this_shape_are_taken(repository: Repository, where: str) -> None:
    deny = repository.prints("deny.sh", {"permissionDecision": "deny", "permissionDecisionReason": "R"})
    repository.file({"preToolUse": [{"bash": deny, "matcher": "bash"}]}, "a.json")
    (repository.hooks / "README.md").write_text("about these hooks")
    prefix = "" if where.endswith("a.json") else "copilot="
    agent = await repository.run(f"--hooks={prefix}{repository.root}/{where}")
    refused(await agent.ask(call(1, "bash")))
    assert text_of(await agent.ask(call(2, "view"))) == "ran view"


async def test_in_the_current_edition_a_result_is_replaced_and_commented_on(repository: Repository) -> None:
    redact = {"modifiedResult": {"resultType": "success", "textResultForLlm": "token: ****"}}
    comment = {"additionalContext": "Never print tokens."}
    hooks = {
        "postToolUse": [
            {"bash": repository.prints("redact.sh", redact), "matcher": "bash"},
            {"bash": repository.prints("comment.sh", comment), "matcher": "bash"},
        ]
    }
    agent = await repository.with_hooks("copilot@current", hooks)
    assert text_of(await agent.ask(call(1, "bash"))) == "token: ****\nNever print tokens."
    assert text_of(await agent.ask(call(2, "view"))) == "ran view"


async def test_in_the_current_edition_a_result_may_be_made_a_failure(repository: Repository) -> None:
    failure = {"modifiedResult": {"resultType": "failure", "textResultForLlm": "The build is broken."}}
    agent = await repository.with_hooks("copilot@current", {"postToolUse": [repository.prints("f.sh", failure)]})
    assert refused(await agent.ask(call(1, "bash"))) == "The build is broken."


async def test_session_hooks_run_in_both_spellings(repository: Repository) -> None:
    recorded = repository.root / "recorded"
    names = ("sessionStart", "SessionStart", "sessionEnd", "SessionEnd")
    agent = await repository.with_hooks("copilot", {name: [f"cat >>'{recorded}'"] for name in names})
    await agent.ask(call(1, "bash"))
    agent.end_input()
    await agent.ended()
    started, started_too, ended, ended_too = map(json.loads, recorded.read_text().splitlines())
    assert (started["source"], ended["reason"]) == ("startup", "complete")
    assert (started_too["hook_event_name"], ended_too["hook_event_name"]) == ("SessionStart", "SessionEnd")
    assert started["sessionId"] == ended["sessionId"] == started_too["session_id"] == ended_too["session_id"]


async def test_in_the_current_edition_a_session_begins_with_instructions(repository: Repository) -> None:
    context = repository.prints("context.sh", {"additionalContext": "Use pnpm."})
    file = repository.file({"sessionStart": [context]})
    agent = repository.scene.run(f"--hooks=copilot@current={file}")
    assert (await agent.initialize())["result"]["instructions"] == "Use pnpm."


# --- where a person would be asked ---

ASK: Final = {"permissionDecision": "ask", "permissionDecisionReason": "Is it safe?"}


@BOTH
async def test_a_person_is_asked_or_the_call_denied(repository: Repository, dialect: str) -> None:
    agent = await repository.with_hooks(dialect, {"preToolUse": [repository.prints("ask.sh", ASK)]})
    assert "Is it safe?" in refused(await agent.ask(call(1, "bash")))
    assert repository.scene.calls_received() == []


@BOTH
async def test_an_approver_answers_for_the_person(repository: Repository, dialect: str) -> None:
    ask, approve = repository.prints("ask.sh", ASK), repository.script("approve.sh", APPROVE)
    agent = await repository.with_hooks(dialect, {"preToolUse": [ask], "permissionRequest": [approve]})
    assert text_of(await agent.ask(call(1, "view", path="/etc/hosts"))) == "ran view"
    text = refused(await agent.ask(call(2, "create", path="/etc/hosts")))
    assert "Only src/ may be written, not /etc/hosts" in text
    assert [one["params"]["name"] for one in repository.scene.calls_received()] == ["view"]


async def test_an_approver_may_be_asked_about_each_call(repository: Repository) -> None:
    approve = {"bash": repository.script("approve.sh", APPROVE), "matcher": "create|edit"}
    file = repository.file({"permissionRequest": [approve]})
    text = f'[[use]]\nfile = "{file}"\ndialect = "copilot"\nfire_permission_request = "always"\n'
    agent = await repository.run(repository.scene.config(text))
    refused(await agent.ask(call(1, "create", path="/etc/hosts")))
    assert text_of(await agent.ask(call(2, "create", path="src/a.py"))) == "ran create"
    assert text_of(await agent.ask(call(3, "create_all", path="/etc"))) == "ran create_all"


async def test_later_answers_override_earlier_ones(repository: Repository) -> None:
    deny = repository.prints("deny.sh", {"behavior": "deny", "message": "R"})
    allow = repository.prints("allow.sh", {"behavior": "allow"})
    ask = repository.prints("ask.sh", ASK)
    agent = await repository.with_hooks(
        "copilot",
        {
            "preToolUse": [ask],
            "permissionRequest": [
                deny,
                {"bash": allow, "matcher": "view"},
            ],
        },
    )
    assert text_of(await agent.ask(call(1, "view"))) == "ran view"
    assert "R" in refused(await agent.ask(call(2, "bash")))


async def test_exit_2_of_an_approver_denies_and_interrupt_stops_the_others(repository: Repository) -> None:
    gate = repository.scene.gate("held")
    stop = f"echo '{json.dumps({'message': 'enough', 'interrupt': True})}'; echo noise >&2; exit 2"
    file = repository.file(
        {
            "preToolUse": [{"bash": gate.script, "matcher": "view"}],
            "permissionRequest": [{"bash": stop, "matcher": "bash"}],
        }
    )
    text = f'[[use]]\nfile = "{file}"\ndialect = "copilot"\nfire_permission_request = "always"\n'
    agent = await repository.run(repository.scene.config(text))
    await agent.send(call(1, "view"))
    await gate.reached()
    await agent.send(call(2, "bash"))
    for number in (1, 2):
        reason = refused(await agent.answer(number))
        assert "enough" in reason
        assert "noise" not in reason
    assert repository.scene.calls_received() == []


async def test_hooks_run_for_an_error(repository: Repository) -> None:
    gate, recorded = repository.scene.gate("error"), repository.root / "recorded"
    agent = await repository.with_hooks("copilot", {"errorOccurred": [f"cat >'{recorded}'; {gate.report}"]})
    await agent.ask(call(1, "error", error={"code": -32602, "message": "Unknown tool"}))
    await gate.reached(PATIENCE)
    error = json.loads(recorded.read_text())
    assert "Unknown tool" in error["error"]["message"]
    assert (error["errorContext"], error["recoverable"]) == ("tool_execution", True)


async def test_an_elicitation_of_the_server_is_a_notification(repository: Repository) -> None:
    gate, recorded = repository.scene.gate("notified"), repository.root / "recorded"
    show = {"bash": f"cat >'{recorded}'; {gate.report}", "matcher": "elicitation_.*"}
    agent = await repository.with_hooks("copilot", {"notification": [show]})
    await agent.send(request(1, "raw", text=elicitation("Which branch?")))
    await agent.notified("elicitation/create")
    await gate.reached(PATIENCE)
    notification = json.loads(recorded.read_text())
    assert notification["hook_event_name"] == "Notification"
    assert (notification["message"], notification["notification_type"]) == ("Which branch?", "elicitation_dialog")


async def test_what_a_notification_hook_adds_goes_with_a_later_result(repository: Repository) -> None:
    away = repository.prints("away.sh", {"additionalContext": "The user is away."})
    agent = await repository.with_hooks("copilot", {"preToolUse": ["true"], "notification": [away]})
    await agent.send(request("ask", "raw", text=elicitation("Which branch?")))
    await agent.notified("elicitation/create")
    text, number = "ran bash", 0
    with anyio.fail_after(PATIENCE):
        while text == "ran bash":  # nobody waits for such a hook
            number += 1
            text = text_of(await agent.ask(call(number, "bash")))
    assert text == "ran bash\nThe user is away."
    assert text_of(await agent.ask(call(0, "bash"))) == "ran bash"


def elicitation(message: str) -> str:
    params = {"message": message, "requestedSchema": {"type": "object", "properties": {}}}
    return json.dumps({"jsonrpc": "2.0", "id": 77, "method": "elicitation/create", "params": params}) + "\n"
