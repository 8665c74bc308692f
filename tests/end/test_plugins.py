"""Plugins as they are published, in front of a real process: a folder with a manifest, hooks/hooks.json and scripts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.end.agent import SERVER, Agent, Scene, call, refused, text_of

HOOKIFY = {
    "description": "Rules of the project, from .claude/hookify.*.local.md",
    "hooks": {
        event: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": f"python3 ${{CLAUDE_PLUGIN_ROOT}}/hooks/{event.lower()}.py",
                        "timeout": 10,
                    }
                ]
            }
        ]
        for event in ("PreToolUse", "Stop", "UserPromptSubmit")
    },
}
"""The shape of hookify: scripts of the plugin, which read rules in the project and import the plugin's own modules."""

PRETOOLUSE = """
import json, os, pathlib, sys
sys.path.insert(0, os.environ["CLAUDE_PLUGIN_ROOT"])
from core.rules import forbidden
event = json.load(sys.stdin)
pathlib.Path(os.environ["CLAUDE_PLUGIN_DATA"], "calls").write_text(event["tool_name"])
words = forbidden(pathlib.Path(".claude").glob("hookify.*.local.md"))
if any(word in json.dumps(event["tool_input"]) for word in words):
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                             "permissionDecisionReason": "a rule of the project forbids it"}}))
"""
RULES = """
def forbidden(files):
    return [line for file in files for line in file.read_text().split()]
"""

SECURITY_GUIDANCE = {
    "hooks": {
        "PostToolUse": [
            {
                "matcher": "mcp__.*",
                "hooks": [
                    {
                        "type": "command",
                        "command": 'bash "${CLAUDE_PLUGIN_ROOT}/hooks/sg.sh" "${CLAUDE_PLUGIN_ROOT}/hooks/review.py"',
                    }
                ],
            }
        ]
    }
}
"""The shape of security-guidance: a launcher of the plugin starts a script of the plugin."""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def hookify(root: Path) -> Path:
    write(root / ".claude-plugin/plugin.json", '{"name": "hookify", "version": "0.1.0"}')
    write(root / "hooks/hooks.json", json.dumps(HOOKIFY))
    write(root / "hooks/pretooluse.py", PRETOOLUSE)
    write(root / "core/rules.py", RULES)
    return root


def stored(user: Path, plugin: str) -> str:
    """What a plugin like hookify has stored in its data folder."""
    return (user / "plugins/data" / plugin / "calls").read_text()


async def begun(scene: Scene, *options: str) -> Agent:
    agent = scene.run("--name=lean", *options, server=SERVER)
    await agent.initialize()
    return agent


async def test_a_plugin_like_hookify_reads_the_rules_of_the_project_and_stores_in_its_own_folder(
    scene: Scene,
) -> None:
    root = hookify(scene.folder / "plugins" / "hookify")
    write(scene.folder / ".claude/hookify.push.local.md", "secret")
    agent = await begun(scene, f"--hooks=claude={root}")
    assert refused(await agent.ask(call(1, "echo", text="a secret"))) == (
        "Blocked by the PreToolUse hook pretooluse.py: a rule of the project forbids it"
    )
    assert "open" in text_of(await agent.ask(call(2, "echo", text="open")))
    assert stored(Path(scene.env["HOME"], ".claude"), "hookify-inline") == "mcp__lean__echo"
    assert "hooks.Stop cannot fire behind MCP" in agent.standard_error()


async def test_a_plugin_like_security_guidance_comments_on_results(scene: Scene) -> None:
    root = scene.folder / "security-guidance"
    write(root / "hooks/hooks.json", json.dumps(SECURITY_GUIDANCE))
    write(root / "hooks/sg.sh", 'exec python3 "$@"')
    write(root / "hooks/review.py", "import sys\nprint('look at line 3', file=sys.stderr)\nsys.exit(2)")
    agent = await begun(scene, f"--hooks=claude={root}")
    assert text_of(await agent.ask(call(1, "echo", text="x"))).endswith("look at line 3")


async def test_the_users_folder_brings_its_plugins(scene: Scene) -> None:
    user = Path(scene.env["HOME"], ".claude")
    root = hookify(user / "plugins/cache/official/hookify/0.1.0")
    installed = {"version": 2, "plugins": {"hookify@official": [{"scope": "user", "installPath": str(root)}]}}
    write(user / "plugins/installed_plugins.json", json.dumps(installed))
    write(user / "settings.json", '{"enabledPlugins": {"hookify@official": true}}')
    write(scene.folder / ".claude/hookify.push.local.md", "secret")
    agent = await begun(scene, "--hooks=claude=~/.claude")
    assert "a rule of the project forbids it" in refused(await agent.ask(call(1, "echo", text="a secret")))
    assert stored(user, "hookify-official") == "mcp__lean__echo"


async def test_the_project_of_the_command_line_is_where_hooks_run(scene: Scene) -> None:
    root = hookify(scene.folder / "hookify")
    write(scene.folder / "there/.claude/hookify.push.local.md", "secret")
    agent = await begun(scene, f"--hooks=claude={root}", "--project=there")
    assert "a rule of the project forbids it" in refused(await agent.ask(call(1, "echo", text="a secret")))
