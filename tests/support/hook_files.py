"""Hook files of six systems around one command, and what a hook of each prints to deny a call or to comment on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

HOOK_FILES: Final[dict[str, Any]] = {
    "claude": lambda event, command: {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}},
    "claw": lambda event, command: {"hooks": {event: [command]}},
    "code-assist": lambda event, command: {"hooks": {event: [{"command": command, "timeout": 9000, "name": "one"}]}},
    "copilot": lambda event, command: {
        "version": 1,
        "hooks": {event[0].lower() + event[1:]: [{"type": "command", "bash": command}]},
    },
    "docker-agent": lambda event, command: {
        "agents": {
            "root": {
                "hooks": {
                    {"PreToolUse": "pre_tool_use", "PostToolUse": "post_tool_use"}[event]: [
                        {"matcher": "*", "hooks": [{"type": "command", "command": command}]}
                    ]
                }
            }
        }
    },
    "lime": lambda event, command: {"hooks": {event: [command]}},
}
DENIALS: Final = {
    "claude": "echo no >&2; exit 2",
    "claw": "echo no; exit 2",
    "code-assist": """printf '{"decision": "deny", "reason": "no"}'""",
    "copilot": """printf '{"permissionDecision": "deny", "permissionDecisionReason": "no"}'""",
    "docker-agent": "echo no >&2; exit 2",
    "lime": """printf '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}'""",
}
COMMENTS: Final = {
    "claude": """printf '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"seen"}}'""",
    "claw": "echo seen",
    "code-assist": """printf '{"additional_context": "seen"}'""",
    "lime": """printf '{"hookSpecificOutput": {"additionalContext": "seen"}}'""",
}


def hooks_file(folder: Path, dialect: str, command: str, event: str = "PreToolUse") -> str:
    (folder / f"{dialect}.json").write_text(json.dumps(HOOK_FILES[dialect](event, command)))
    return f"--hooks={dialect}={dialect}.json"


def config(folder: Path, text: str) -> str:
    (folder / "hookproxy.toml").write_text(text)
    return "--config=hookproxy.toml"
