"""The registry of dialects: one folder and one line each. A dialect is imported when it is first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from .dialect import Dialect

_CONSTANTS: Final = {
    "augment": "augment.AUGMENT",
    "cascade": "cascade.CASCADE",
    "claude": "claude.CLAUDE",
    "claw": "claw.CLAW",
    "claw@current": "claw.CLAW_CURRENT",
    "cline": "cline.CLINE",
    "code-assist": "code_assist.CODE_ASSIST",
    "codex": "codex.CODEX",
    "copilot": "copilot.COPILOT",
    "copilot@current": "copilot.COPILOT_CURRENT",
    "crush": "crush.CRUSH",
    "cursor": "cursor.CURSOR",
    "docker-agent": "docker_agent.DOCKER_AGENT",
    "docker-agent@current": "docker_agent.DOCKER_AGENT_CURRENT",
    "droid": "droid.DROID",
    "gemini": "gemini.GEMINI",
    "goose": "goose.GOOSE",
    "iflow": "iflow.IFLOW",
    "kimi": "kimi.KIMI",
    "kiro": "kiro.KIRO",
    "lime": "lime.LIME",
    "qwen": "qwen.QWEN",
    "vscode": "vscode.VSCODE",
}


class _Registry(Mapping[str, Dialect]):
    """The dialects by name. Importing all of them takes 10 ms, and most configurations use only one."""

    def __getitem__(self, name: str) -> Dialect:
        """Raises KeyError."""
        module, _, constant = _CONSTANTS[name].rpartition(".")
        dialect = getattr(import_module(f".{module}", __package__), constant)
        assert isinstance(dialect, Dialect)
        return dialect

    def __iter__(self) -> Iterator[str]:
        return iter(_CONSTANTS)

    def __len__(self) -> int:
        return len(_CONSTANTS)

    def __contains__(self, name: object) -> bool:
        return name in _CONSTANTS


DIALECTS: Final[Mapping[str, Dialect]] = _Registry()
