"""The names of hooks: the script, or the first telling words. The commands have the shapes of published hook files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.shared.labels import argv_label, command_label

FILE = "FILE=$(echo \"$CLAUDE_TOOL_INPUT\" | jq -r '.tool_input.file_path // empty'); "
STDIN = "FILE=$(echo $STDIN_JSON | jq -r '.tool_input.file_path // \"\"'); "


@pytest.mark.parametrize(
    ("command", "label"),
    [
        # a script, however it is started
        ("python3 guards/paths.py --x", "paths.py"),
        ('"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh', "guard.sh"),
        ("DEBUG=1 PYTHONPATH=a/b python3.12 -u ./guards/paths.py", "paths.py"),
        ("/usr/bin/env node hooks/a.mjs", "a.mjs"),
        ("uv run guards/a.py", "a.py"),
        ("uv run --script $CLAUDE_PROJECT_DIR/.claude/hooks/notification.py --notify", "notification.py"),
        ("bun ${PAI_DIR}/hooks/handlers/BuildCLAUDE.ts", "BuildCLAUDE.ts"),
        ("./guard.sh; exit 0", "guard.sh"),
        ('python3 "${CLAUDE_PLUGIN_ROOT}/hooks/pretooluse.py"', "pretooluse.py"),
        ('bash "${CLAUDE_PLUGIN_ROOT}/hooks/sg-python.sh" "${CLAUDE_PLUGIN_ROOT}/hooks/review.py"', "sg-python.sh"),
        ('"${CLAUDE_PLUGIN_ROOT}/hooks/run-hook.cmd" session-start', "run-hook.cmd"),
        ('bash "${CLAUDE_PLUGIN_ROOT:-.}/hooks/intercept-github-curl.sh"', "intercept-github-curl.sh"),
        ('python "${CLAUDE_PROJECT_DIR:-$(git rev-parse --show-toplevel)}/.claude/hooks/plan_gate.py"', "plan_gate.py"),
        ("bash -c 'if test -f \"$R/hooks/bash_hook.py\"; then python3 \"$R/hooks/bash_hook.py\"; fi'", "bash_hook.py"),
        ("$PYTHON guards/a.py", "a.py"),
        ("timeout 5 bash ~/.claude/hooks/skill-watcher.sh 2>/dev/null || true", "skill-watcher.sh"),
        ('cd "$CLAUDE_PROJECT_DIR" && npx tsx .claude/hooks/skill-activation.ts', "skill-activation.ts"),
        ("${CLAUDE_PLUGIN_ROOT}/scripts/setup.sh 2>/dev/null | grep '✗' | head -3 || true", "setup.sh"),
        ('export PATH="$($SHELL -lc \'echo $PATH\'):$PATH"; _R="$A"; node "$_R/scripts/runner.js" x', "runner.js"),
        ("# loads the environment\n# of the project\nbash ./load-env.sh", "load-env.sh"),
        ("node -e \"const p=require('path')\" node scripts/hooks/flags.js pre:bash scripts/hooks/tmux.js", "tmux.js"),
        ("[ -x ~/.bin/guard.py ] && ~/.bin/guard.py || exit 0", "guard.py"),
        # a program
        ("claudekit-hooks run check-any-changed", "claudekit-hooks"),
        ("/opt/Guards/check", "check"),
        ("~/.claude/bin/claudio || true", "claudio"),
        ("DEBUG=1 prettier --check .", "prettier"),
        ("bash ${CLAUDE_PLUGIN_ROOT}/bin/ops-pretool-health \"$TOOL_INPUT\" 2>/dev/null || true", "ops-pretool-health"),
        ("python3 -m guards.paths", "guards.paths"),
        ("npx -y protect-mcp@0.7.4 evaluate --tool \"$TOOL_NAME\"", "protect-mcp@0.7.4"),
        ("jq -r '.tool_input.file_path' | xargs -r npx prettier --write", "prettier"),
        ("git stash push -m before", "git stash"),
        ("npm run lint --silent", "npm run"),
        ("[ -f .graph/graph.db ] && (uvx code-review-graph update >/dev/null 2>&1 &) || true", "code-review-graph"),
        ("command -v budgetclaw >/dev/null 2>&1 && budgetclaw status || echo '[not installed]'", "budgetclaw"),
        ('if [ -f "${FLAG:-./.approved}" ]; then exit 0; fi; npx protect-mcp evaluate', "protect-mcp"),
        ("(test -f pubspec.yaml && dart format . 2>/dev/null) || (test -f package.json && bun run format)", "dart"),
        (FILE + '[ -f "$FILE" ] && prettier --write "$FILE"', "prettier"),
        (STDIN + 'if [[ "$FILE" =~ \\.(js|jsx|ts|tsx)$ ]]; then npx jest "$FILE"; fi', "jest"),
        (STDIN + 'if [[ "$FILE" =~ \\.py$ ]]; then RESULT=$(flake8 "$FILE"); fi', "flake8"),
        ('case "$1" in *.py) ruff check "$1";; esac', "ruff"),
        # a script of one line that only tests and prints
        ("jq -r .tool_input.command >> /tmp/log.txt", "jq -r .tool_input.command"),
        ("bash -c 'cat ./notes.txt'", "cat ./notes.txt"),
        ("echo session started", "echo session started"),
        (FILE + "if echo \"$FILE\" | grep -q prod; then echo 'Never edit production' >&2; exit 2; fi",
         "echo Never edit production"),
        ('INPUT=$(cat); echo "$INPUT" | grep -q "rm -rf" && exit 2', "grep -q rm -rf"),
        ('cat "${CLAUDE_PLUGIN_ROOT}/hooks/hint.md"', "cat hint.md"),
        ("node -e \"process.exit(2)\"", "node -e process.exit(2)"),
        # not a command
        ("A=1", "A=1"),
        ("# nothing", "# nothing"),
    ],
)  # fmt: skip
def test_the_label_of_a_hook_is_its_script_or_its_first_telling_words(command: str, label: str) -> None:
    assert command_label(command) == label


@pytest.mark.parametrize("command", ["it's broken.sh", 'echo "open', "$(", "`", "if", "((("])
def test_a_command_that_no_shell_would_read_has_a_label_too(command: str) -> None:
    assert command_label(command)


def test_the_label_of_words_is_that_of_a_command() -> None:
    assert argv_label(["python3", "/x/guard.py", "--strict"]) == "guard.py"
    assert argv_label(["bash", "-c", "exec ./a.sh"]) == "a.sh"
    assert argv_label([]) == ""


@given(st.text(alphabet="abc $\"'(){};|&<>#[]-=/.\n\\`", min_size=1).filter(str.strip))
def test_any_command_has_a_label(command: str) -> None:
    assert command_label(command)
