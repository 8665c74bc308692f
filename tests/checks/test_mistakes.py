"""Typing errors in hookproxy.toml, in hook files and in what hooks print: each is answered with its place and a repair.

Each row is what a person writes, where the answer must point, and what of the repair it must say. The inputs are real
files, read as `run`, `check` and `try` read them; nothing is started.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookproxy.checks.flow_entries import covered
from hookproxy.checks.inspect import inspect
from hookproxy.checks.report import CheckedServer
from hookproxy.checks.startup_notes import with_lines
from hookproxy.config.load import load
from hookproxy.dialects.registry import DIALECTS
from hookproxy.dialects.shared.unread_members import unread
from hookproxy.hooks.coverage import coverage
from hookproxy.model.errors import UserError
from hookproxy.model.hooks import Ended, HookResult, Tool
from hookproxy.policy.tool_tables import unknown_tools
from tests.support.proxy_rig import hook

HOOK: Final = "[[hooks.PreToolUse]]\ncommand = 'true'\n"
TRUE: Final = {"type": "command", "command": "true"}
TOOLS: Final = ("git_status", "git_commit", "write_file", "run_command")
"""The tools of the server `git`."""


SOURCE: Final = "[[flow.sources]]\n{}\nlabels = ['x']\n[[flow.sinks]]\ntool = 'y'\nlabels = ['x']\n"


def rules(*texts: str, kind: str = "deny") -> str:
    return f"[permissions]\n{kind} = {json.dumps(texts)}\n"


TOML: Final = (
    # keys and tables
    ('on_asks = "deny"\n', ":1: on_asks", "did you mean 'on_ask'?"),
    (
        '[audit]\nenabled = true\non_ask = "deny"\n',
        ":3: audit.on_ask",
        "`on_ask` stands in [audit] because it is written",
    ),
    (f'{HOOK}on_ask = "deny"\n', ":3: hooks.PreToolUse[0].on_ask", "move it above [[hooks.PreToolUse]]"),
    ('[[use]]\nhooks = "claude=x.json"\n', ":2: use[0].hooks", 'write file = "…"'),
    ('[[use]]\nfile = "claude=x.json"\n', ":1: use[0]", 'write dialect = "claude" and file = "x.json"'),
    (
        '[hooks.composition]\nprofile = "parallel/strictest"\n',
        ":1: hooks.composition",
        'type = "agent-hooks" in a hook',
    ),
    ('deny = ["x"]\n', ":1: deny", "it is a key of [permissions]"),
    ('[permission]\ndeny = ["x"]\n', ":1: permission", "did you mean 'permissions'?"),
    ('[permissions]\ndney = ["x"]\n', ":2: permissions.dney", "did you mean 'deny'?"),
    ('[permissions]\ndeny = "x"\n', ":2: permissions.deny", 'write deny = ["x"]'),
    ('[permissions]\ndefault = "dney"\n', ":2: permissions.default", "did you mean 'deny'?"),
    ('[permissions]\ndefault = "block"\n', ":2: permissions.default", "did you mean 'deny'?"),
    ('[permissions]\nunreadable = "prompt"\n', ":2: permissions.unreadable", "did you mean 'ask'?"),
    ('on_failure = "denied"\n', ":1: on_failure", "did you mean 'deny'?"),
    ('[audit]\narguments = "ful"\n', ":2: audit.arguments", "did you mean 'full'?"),
    ('[audit]\nlog = "x"\n', ":2: audit.log", "did you mean 'file'?"),
    ('[lock]\non_chnage = "ask"\n', ":2: lock.on_chnage", "did you mean 'on_change'?"),
    ('preset = "filesytem"\n', ":1: preset", "did you mean 'filesystem'?"),
    ('[tools.x]\nalias = "Bash"\n', ":2: tools.x.alias", "did you mean 'as'?"),
    ('[[limit]]\ntool = "x"\ncalls = 1\nper = "minute"\n', ":1: limit", "did you mean 'limits'?"),
    ('[[limits]]\ntool = "x"\ncalls = 1\nper = "minutes"\n', ":4: limits[0].per", "did you mean 'minute'?"),
    ('[[limits]]\ntool = "x"\ncalls = "10"\nper = "minute"\n', ":3: limits[0].calls", "write calls = 10"),
    ('[[limits]]\ntool = "search_.*"\ncalls = 1\nper = "minute"\n', ":1: limits[0]", "write 'search_*'"),
    ('strict = "yes"\n', ":1: strict", "write strict = true or false"),
    ('[[limits]]\ntool = "x"\ncalls = "7"\nper = "minute"\n', ":3: limits[0].calls", "write calls = 7"),
    ('[permissions]\ndeny = ["Bash rm *"]\n', ":2: permissions.deny[0]", "'Bash(rm *)'"),
    # hooks and their files
    (f'{HOOK}timeout = "10s"\n', ":3: hooks.PreToolUse[0].timeout", "write timeout = 10"),
    (f'{HOOK}matcher = "bash"\n', ":1: hooks.PreToolUse[0]", "did you mean 'Bash'?"),
    (f'{HOOK}matcher = "Edti|Write"\n', ":1: hooks.PreToolUse[0]", "did you mean 'Edit'?"),
    ("[[hook.PreToolUse]]\ncommand = 'true'\n", ":1: hook", "did you mean 'hooks'?"),
    ("[[hooks.pre_tool_use]]\ncommand = 'true'\n", ":1: hooks.pre_tool_use", "did you mean 'PreToolUse'?"),
    ("[hooks.PreToolUse]\ncommand = 'true'\n", ":1: hooks.PreToolUse", "write [[hooks.PreToolUse]]"),
    ('[hooks]\nPreToolUse = ["x"]\n', ":2: hooks.PreToolUse[0]", "write [[hooks.PreToolUse]]"),
    ("[[hooks.PreToolUse]]\ncomand = 'true'\n", ":2: hooks.PreToolUse[0].comand", "did you mean 'command'?"),
    (f'{HOOK}tools = "Bash"\n', ":3: hooks.PreToolUse[0].tools", "did you mean 'matcher'?"),
    (f'{HOOK}event = "PreToolUse"\n', ":3: hooks.PreToolUse[0].event", "the name of the table says the event"),
    (f'{HOOK}matcher = "Bash("\n', ":1: hooks.PreToolUse[0]", "write a tool's name"),
    (f'{HOOK}matcher = "Bash(rm:*)"\n', ":1: hooks.PreToolUse[0]", "if = 'Bash(rm:*)'"),
    (f'{HOOK}matcher = "*_file"\n', ":1: hooks.PreToolUse[0]", "matchers are regular expressions: write .*_file"),
    (f'{HOOK}if = "Bash(rm *"\n', ":1: hooks.PreToolUse[0]", "close the parenthesis: 'Bash(rm *)'"),
    ('[[hooks.PreToolUse]]\ncommand = "guard.sh"\n', ":1: hooks.PreToolUse[0]", "write ./guard.sh"),
    ('[audit]\nfile = "$HOME/a.jsonl"\n', "audit.file", "variables are not replaced"),
    ('[audit]\nfile = "~/{usr}.jsonl"\n', "audit.file", "only {user} is replaced"),
    ('[audit]\nfile = ".claude"\n', "audit.file", "it is a folder"),
    (f'{HOOK}matcher = "mcp__git"\n', ":1: hooks.PreToolUse[0]", "write mcp__git__.*"),
    (f"{HOOK}timeout = 30000\n", ":1: hooks.PreToolUse[0]", "write seconds: 30 for 30000"),
    (f'{HOOK}type = "comand"\n', ":3: hooks.PreToolUse[0].type", "did you mean 'command'?"),
    ('[[hooks.PreToolUse]]\ncommand = "./gaurd.sh"\n', ":1: hooks.PreToolUse[0]", "did you mean 'guard.sh'?"),
    ('[[hooks.PreToolUse]]\ncommand = "pyhton3 guard.py"\n', ":1: hooks.PreToolUse[0]", "did you mean 'python3'?"),
    ('[[use]]\nfile = ".claude/setings.json"\n', "use[0] names it", "did you mean 'settings.json'?"),
    ('[[use]]\nfile = ".claude/settings.json"\ndialect = "cluade"\n', ":3: use[0].dialect", "did you mean 'claude'?"),
    ('[[use]]\npath = ".claude/settings.json"\n', ":2: use[0].path", "did you mean 'file'?"),
    ('[use]\nfile = ".claude/settings.json"\n', ":1: use", "write [[use]]"),
    (
        '[hooks]\nPreToolUse = [{ matcher = "Bash", hooks = [{ type = "command", command = "x" }] }]\n',
        ":2: hooks.PreToolUse[0].hooks",
        "write [[hooks.PreToolUse]], and below it matcher and command",
    ),
    ('[tools.run_it]\nas = "bash"\n', "tools.run_it", 'write as = "Bash"'),
    # rules
    (rules("write_file(C:\temp)"), ":2: permissions.deny[0]", "write it in single quotes"),
    (rules("write_.*"), ":2: permissions.deny[0]", "write 'write_*'"),
    (rules("^write"), ":2: permissions.deny[0]", "write 'write*'"),
    (rules("(write|edit)_file"), ":2: permissions.deny[0]", "'write_file', 'edit_file'"),
    (rules("Bash(rm:*"), ":2: permissions.deny[0]", "'Bash(rm:*)'"),
    (rules("Bash(rm:*) && Bash(mv:*)"), ":2: permissions.deny[0]", "'Bash(rm:*)', 'Bash(mv:*)'"),
    (rules("write file", kind="ask"), ":2: permissions.ask[0]", "write 'write_file'"),
    (rules("Bsh(rm:*)"), ":2: permissions.deny[0]", "did you mean 'Bash'?"),
    (f'{HOOK}if = "bash(rm *)"\n', ":1: hooks.PreToolUse[0] if 'bash'", "did you mean 'Bash'?"),
    (rules("mcp_git_commit"), ":2: permissions.deny[0]", "mcp__SERVER__TOOL"),
    (rules("resource/read"), ":2: permissions.deny[0]", "did you mean 'resources/read'?"),
    (rules("*") + 'allow = ["read_*"]\n', ":3: permissions.allow[0]", 'write default = "deny"'),
    (rules("Bash (rm *)"), ":2: permissions.deny[0]", "write 'Bash(rm *)'"),
    (rules("Bash rm *)"), ":2: permissions.deny[0]", "'Bash(rm *)'"),
    (rules("Bash[rm *]"), ":2: permissions.deny[0]", "write 'Bash(rm *)'"),
    (rules("Bash:rm *"), ":2: permissions.deny[0]", "'Bash(rm *)'"),
    (rules("Bash\uff08rm *\uff09"), ":2: permissions.deny[0]", "write 'Bash(rm *)'"),
    (rules("\uff22ash(rm *)"), ":2: permissions.deny[0]", "write 'Bash(rm *)'"),
    (rules("not Bash(ls *)"), ":2: permissions.deny[0]", "allow = ['Bash(ls *)']"),
    (rules("!Bash(ls *)"), ":2: permissions.deny[0]", "allow = ['Bash(ls *)']"),
    (rules("/git_.*/"), ":2: permissions.deny[0]", "write 'git_*'"),
    (rules("git_[a-z]+"), ":2: permissions.deny[0]", "write 'git_*'"),
    (rules("Bash(rm *))"), ":2: permissions.deny[0]", "write 'Bash(rm *)'"),
    (rules('Bash("rm *")'), ":2: permissions.deny[0]", "write 'Bash(rm *)'"),
    (rules("Bash(rm *);Bash(mv *)"), ":2: permissions.deny[0]", "'Bash(rm *)', 'Bash(mv *)'"),
    (rules("Bash(rm *|mv *)"), ":2: permissions.deny[0]", "'Bash(rm *)', 'Bash(mv *)'"),
    (rules("Bash(^rm.*)"), ":2: permissions.deny[0]", "write 'Bash(rm *)'"),
    (rules("Bash(rm .*)"), ":2: permissions.deny[0]", "'Bash(rm *)' is about all arguments"),
    (rules("Bash(sudo)"), ":2: permissions.deny[0]", "'Bash(sudo *)' is about all its calls"),
    (rules("Read($HOME/.ssh/**)"), ":2: permissions.deny[0]", "write 'Read(~/.ssh/**)'"),
    (rules("Read(/etc/)"), ":2: permissions.deny[0]", "write 'Read(/etc/**)'"),
    (rules("Write(/etc)"), ":2: permissions.deny[0]", "'Write(/etc/**)' is about its files"),
    (rules("WebFetch(domain=x.example)"), ":2: permissions.deny[0]", "write 'WebFetch(domain:x.example)'"),
    (rules("send_mail(to:*@x.example)"), ":2: permissions.deny[0]", "write 'send_mail(*@x.example)'"),
    (SOURCE.format("tool = 'read_.*'"), ":1: flow.sources[0]", "write 'read_*'"),
    (SOURCE.format("path = '$HOME/x'"), ":1: flow.sources[0]", "write '~/x'"),
    (SOURCE.format("annotation = 'readonlyHint'"), ":1: flow.sources[0]", "did you mean 'readOnlyHint'?"),
    ("[[secrets.restore]]\ntool = 'send_.*'\n", "[[secrets.restore]]", "write 'send_*'"),
    # TOML
    ("<<<<<<< HEAD\nstrict = true\n", ":1: ", "end the merge"),
    ("/* x */\n", ":1: ", "a comment begins with #"),
    ("; x\n", ":1: ", "a comment begins with #"),
    ("strict = yes\n", ":1: ", "write strict = true"),
    ("strict = FALSE\n", ":1: ", "write strict = false"),
    ("on_ask = null\n", ":1: ", "leave the line out"),
    ('[permissions]\ndeny = ("a", "b")\n', ":2: ", 'write a list in brackets: deny = ["a", "b"]'),
    ('[permissions]\ndeny = ["a"] allow = ["b"]\n', ":2: ", 'deny = ["a"], and below it allow = ["b"]'),
    ("ask_seconds = 5,5\n", ":1: ", "write a point in the place of the comma: ask_seconds = 5.5"),
    ('[permissions]\ndeny += ["x"]\n', ":2: ", 'write all of it there, deny = ["x"]'),
    ("[permissions]]\n", ":1: ", "write [permissions], or [[permissions]]"),
    (f'{HOOK}matcher = "Bash Write"\n', ":1: hooks.PreToolUse[0]", "write 'Bash|Write'"),
    (f'{HOOK}matcher = "Bash;Write"\n', ":1: hooks.PreToolUse[0]", "write 'Bash|Write'"),
    (f'{HOOK}matcher = "Bash or Write"\n', ":1: hooks.PreToolUse[0]", "write 'Bash|Write'"),
    (f'{HOOK}matcher = "/Bash/"\n', ":1: hooks.PreToolUse[0]", "write 'Bash'"),
    (f'{HOOK}matcher = "\uff22ash"\n', ":1: hooks.PreToolUse[0]", "write 'Bash'"),
    (f'{HOOK}matcher = "Bash||Write"\n', ":1: hooks.PreToolUse[0]", "write 'Bash|Write'"),
    ("ask_seconds = 5m\n", ":1: ", "write ask_seconds = 300"),
    ("[[limits]]\nwindow = 10m\n", ":2: ", 'put it in quotes: window = "10m"'),
    ('[permissions]\ndeny = "a", "b"\n', ":2: ", 'put the items in brackets: deny = ["a", "b"]'),
    ('[permissions]\ndeny = ["a",, "b"]\n', ":2: ", "remove the comma that has no item before it"),
    ('[permissions]\ndeny = [\n  "a"\n  "b",\n]\n', ": not TOML", 'put a comma at the end of line 3: "a",'),
    ("[permissions]\ndeny = ['a\"]\n", ": not TOML", "a quote is not closed in line 2"),
    ("permissions.deny = ['x']\n[permissions]\nask = ['y']\n", ":2: ", "the first is on line 1"),
    ("on_ask = deny\n", ":1: ", 'on_ask = "deny"'),
    ("model = { api = 'openai',\n  name = 'x' }\n", ":1: ", "write all of it in one line"),
    ("[permissions\ndeny = []\n", ":1: ", "close the bracket: [permissions]"),
    ('[permissions]\ndeny = ["x"\n', ":3: ", "close it with ]"),
    ('[permissions]\ndeny = ["a" "b"]\n', ":2: ", 'put a comma between the items: "a", "b"'),
    ("[permissions]\ndeny = [write, edit]\n", ":2: ", 'deny = ["write", "edit"]'),
    ('[permissions] deny = ["x"]\n', ":1: ", "on a line of its own, below [permissions]"),
    ("strict = True\n", ":1: ", "write strict = true"),
    ("strict: true\n", ":1: ", "= in place of the colon"),
    ("strict == true\n", ":1: ", "write one sign: strict = true"),
    ("strict = true;\n", ":1: ", "remove the ;"),
    ("strict = true // yes\n", ":1: ", "a comment begins with #"),
    ("strict true\n", ":1: ", "write strict = true"),
    ("on_ask = \u201cdeny\u201d\n", ":1: ", "write straight quotes"),
    ("strict = true\nstrict = false\n", ":2: ", "strict stands on line 1 already"),
    ("[audit]\nenabled = true\n[audit]\nenabled = true\n", ":3: ", "the first is on line 1"),
    (f'{HOOK}name = "C:\\programs"\n', ":3: ", "use single quotes"),
    ('{"permissions": {"deny": ["x"]}}\n', ":1: ", "it is JSON"),
    # the tables [secrets], [flow], [[limits]], [approvals], [model] and [guard]
    ('[secrets]\nskip = ["generic-api-keey"]\n', ":2: secrets.skip[0]", "did you mean 'generic-api-key'?"),
    ('[secrets]\nskp = ["x"]\n', ":2: secrets.skp", "did you mean 'skip'?"),
    ("[[secrets]]\n", ":1: secrets: must be a table", "write [secrets]"),
    ('[flow]\nseconds = "1h"\n', ":2: flow.seconds", "write seconds = 3600"),
    ('[[flow.sources]]\ntool = "x"\n', ":1: flow.sources[0].labels", 'add labels = ["secret"]'),
    ('[[limits]]\nsame = 2\nwindow = "10 minutes"\n', ":3: limits[0].window", 'write window = "10m"'),
    ("limits = [3]\n", ":1: limits[0]: must be a table", "write [[limits]]"),
    ('on_ask_fallback = "ask"\n', ":1: on_ask_fallback: should be", "write on_ask_fallback = 'auto'"),
    ('[approvals]\nwebhook = "https://x.example"\n', ":2: approvals.webhook: must be", "write [approvals.webhook]"),
    ('[approvals.webhook]\nurl = "https://x.example"\n', ":1: approvals.webhook.secret", 'secret = "env:'),
    ('[model]\napi = "openai"\nname = "x"\n', ":1: model.url is missing", 'add url = "http://localhost:'),
    (
        '[model]\napi = "openai"\nurl = "http://localhost/v1"\nmodel = "x"\n',
        ":4: model.model",
        "the model is named by name = ",
    ),
    ('[guard]\nidle_seconds = "15m"\n', ":2: guard.idle_seconds", "write idle_seconds = 900"),
    ("[guard]\nidle_seconds = 0\n", ":2: guard.idle_seconds", "a number greater than 0"),
    ("[guard]\nmodel = 1\n", ":2: guard.model", "expected one of: idle_seconds"),
    ("guard = true\n", ":1: guard: must be a table", "write [guard]"),
)
"""hookproxy.toml, with `guard.sh` and `guard.py` beside it."""


def group(**members: Any) -> str:  # noqa: ANN401  # any JSON
    return json.dumps({"hooks": {"PreToolUse": [members]}}, indent=1)


HOOK_FILES: Final = (
    ("claude", '{"hooks": {"PreToolUse": [],}}', ":1: ", "remove the comma before column 29"),
    ("claude", '{"hooks":\n{"a": [] "b": []}}', ":2: ", "put a comma before column 10"),
    ("claude", "{'hooks': {}}", ":1: ", "write double quotes at column 2"),
    ("claude", '{"hooks": {} // x\n}', ":1: ", "JSON has no comments"),
    ("claude", '{"hooks": {"PreToolUse": [', ":1: ", "close ]}}"),
    ("claude", '{"hooks": {"a": "x\ny"}}', ":1: ", "write \\n or \\t"),
    (
        "claude",
        '{"hook": {"PreToolUse": []}, "x": {"hook": {"PreToolUse": [{"command": "x"}]}}}',
        ":1: ",
        'write "hooks"',
    ),
    (
        "claude",
        json.dumps({"hooks": {"PreToolUses": [{"hooks": [TRUE]}]}}),
        "hooks.PreToolUses",
        "did you mean 'PreToolUse'?",
    ),
    (
        "gemini",
        json.dumps({"hooks": {"BeforeTol": [{"hooks": [TRUE]}]}}),
        "hooks.BeforeTol",
        "did you mean 'BeforeTool'?",
    ),
    ("claude", group(matchers="Bash", hooks=[TRUE]), ":5:  hooks.PreToolUse[0].matchers", "did you mean 'matcher'?"),
    ("claude", group(tools="Bash", hooks=[TRUE]), ":5:  hooks.PreToolUse[0].tools", "did you mean 'matcher'?"),
    ("qwen", group(tool_name="Bash", hooks=[TRUE]), ":5:  hooks.PreToolUse[0].tool_name", "did you mean 'matcher'?"),
    ("claude", group(matcher="Bash"), ":4: ", 'write {"matcher": "…", "hooks"'),
    ("claude", group(hooks=[{"command": "x"}]), ":6: ", 'write "type": "command"'),
    ("claude", group(hooks=[{"type": "comand", "command": "x"}]), ":6: ", "did you mean 'command'?"),
    ("claude", group(hooks=[{"type": "command", "cmd": "x"}]), ":6: ", "write command for cmd"),
    ("claude", group(hooks=[{**TRUE, "timeout": "10"}]), ":6: ", "write a number of seconds"),
    ("claude", group(hooks=[{**TRUE, "timeout": 30000}]), "hooks.PreToolUse[0].hooks[0]", "write 30"),
    ("claude", group(hooks=[{**TRUE, "timout": 3}]), "hooks.PreToolUse[0].hooks[0].timout", "did you mean 'timeout'?"),
    ("claude", group(matcher="Bash(rm:*)", hooks=[TRUE]), "hooks.PreToolUse[0].matcher", '"if": "Bash(rm:*)"'),
    ("claude", group(matcher="Bahs", hooks=[TRUE]), "hooks.PreToolUse[0].hooks[0]", "did you mean 'Bash'?"),
    ("claude", group(matcher="mcp__git", hooks=[TRUE]), "hooks.PreToolUse[0].matcher", "write mcp__git__.*"),
    (
        "claude",
        group(hooks=[{**TRUE, "command": "./gaurd.sh"}]),
        "hooks.PreToolUse[0].hooks[0]",
        "did you mean 'guard.sh'?",
    ),
    ("claude", '{"hooks": [{"event": "PreToolUse", "command": "x"}]}', "hooks must be an object", 'write {"hooks"'),
)
"""The system, its hook file, and the answer."""

OUTPUTS: Final = (
    (
        "claude",
        {"hookSpecificOutput": {"permissionDecison": "deny", "hookEventName": "PreToolUse"}},
        "hookSpecificOutput.permissionDecison",
        "did you mean",
    ),
    ("claude", {"permissionDecision": "deny"}, "'permissionDecision'", "it belongs in hookSpecificOutput"),
    ("claude", {"blocked": True}, "'blocked'", "it decides by hookSpecificOutput.permissionDecision or decision"),
    ("cursor", {"permision": "deny"}, "'permision'", "did you mean 'permission'?"),
    ("gemini", {"decison": "deny"}, "'decison'", "did you mean 'decision'?"),
    ("kiro", {"blocked": True}, "'blocked'", "the exit status decides"),
)
"""The system, what a hook of it prints, and the answer."""

WITH_SERVER: Final = (
    (f'{HOOK}if = "git_comit(x)"\n', ":1: hooks.PreToolUse[0]", "did you mean 'git_commit'?"),
    (f'[tools.git_comit]\nas = "Bash"\n{HOOK}', "tools.git_comit", "did you mean 'git_commit'?"),
    ('[[limits]]\ntool = "git_comit"\ncalls = 1\n', ":1: limits[0]", "did you mean 'git_commit'?"),
    ('[[limits]]\ntool = "mcp__gti__git_commit"\ncalls = 1\n', ":1: limits[0]", "did you mean 'mcp__git__git_commit'?"),
    (rules("Bsh(rm:*)"), ":2: permissions.deny[0]", "did you mean 'Bash'?"),
    (rules("git_comit", kind="allow"), ":2: permissions.allow[0]", "did you mean 'git_commit'?"),
    (rules("*_comit"), ":2: permissions.deny[0]", "did you mean 'git_commit'?"),
    (rules("mcp__git__git_psuh", kind="ask"), ":2: permissions.ask[0]", "it has git_status"),
    (rules("mcp__gti__git_commit"), ":2: permissions.deny[0]", "did you mean 'mcp__git__git_commit'?"),
    (rules("mcp__github__git_commit"), ":2: permissions.deny[0]", "the server is 'git' here: --name github names it"),
    (rules("drop_table"), ":2: permissions.deny[0]", "it has git_status, git_commit"),
    (f'{HOOK}matcher = "git_comit"\n', ":1: hooks.PreToolUse[0]", "did you mean 'git_commit'?"),
    (f'{HOOK}matcher = "mcp__github__git_commit"\n', ":1: hooks.PreToolUse[0]", "the server is 'git' here"),
    (f'{HOOK}matcher = "Bash(rm:*)"\n', ":1: hooks.PreToolUse[0]", "write matcher = 'Bash' and if = 'Bash(rm:*)'"),
    (f'{HOOK}matcher = "wirte_.*"\n', ":1: hooks.PreToolUse[0]", "did you mean 'write_file'?"),
    (f'{HOOK}matcher = "^.*_comit$"\n', ":1: hooks.PreToolUse[0]", "did you mean 'git_commit'?"),
    (f'{HOOK}matcher = "x|(git|hg)_comit"\n', ":1: hooks.PreToolUse[0]", "did you mean 'git_commit'?"),
    (f'{HOOK}matcher = "mcp__gti__.*"\n', ":1: hooks.PreToolUse[0]", "did you mean 'mcp__git__.*'?"),
    (f'{HOOK}matcher = "mcp__git__wirte_.*"\n', ":1: hooks.PreToolUse[0]", "did you mean 'mcp__git__write_file'?"),
    (f'{HOOK}matcher = "git__git_commit"\n', ":1: hooks.PreToolUse[0]", "did you mean 'mcp__git__git_commit'?"),
    (rules("wirte_*"), ":2: permissions.deny[0]", "did you mean 'write_file'?"),
    (rules("mcp__git__wirte_*"), ":2: permissions.deny[0]", "did you mean 'mcp__git__write_file'?"),
    (rules("git__git_commit"), ":2: permissions.deny[0]", "did you mean 'mcp__git__git_commit'?"),
    (rules("gti__git_commit(x)"), ":2: permissions.deny[0]", "did you mean 'mcp__git__git_commit'?"),
    (rules("git.git_commit", kind="ask"), ":2: permissions.ask[0]", "did you mean 'mcp__git__git_commit'?"),
    (rules("mcp_git_git_commit"), ":2: permissions.deny[0]", "did you mean 'mcp__git__git_commit'?"),
    (f'{HOOK}if = "Bash(rm *))"\n', ":1: hooks.PreToolUse[0]", "write 'Bash(rm *)'"),
    (SOURCE.format("server = 'gti'"), ":1: flow.sources[0]", "did you mean 'git'?"),
    (SOURCE.format("server = 'gitt'\ntool = 'git_status'"), ":1: flow.sources[0]", "did you mean 'git'?"),
    ("[[secrets.off]]\nserver = 'gti'\n", "secrets.off", "did you mean 'git'?"),
    ("[[secrets.restore]]\ntool = 'git_comit'\n", "secrets.restore", "did you mean 'git_commit'?"),
)
"""hookproxy.toml in front of the server `git`, whose tools are known."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"hooks": {}}')
    (tmp_path / "guard.py").touch()
    (tmp_path / "guard.sh").write_text("#!/bin/sh\n")
    (tmp_path / "guard.sh").chmod(0o755)
    return tmp_path


def answers(
    folder: Path, *, config: str | None = None, hooks: tuple[str, ...] = (), tools: tuple[str, ...] = ()
) -> list[str]:
    """All that is said, each with its place and its repair in one text."""
    environ = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    try:
        loaded = load(config, hooks, None, environ, str(folder))
    except UserError as error:
        return [f"{with_lines(error.message)} | {error.hint}"]
    server = None
    if tools:
        listed = [Tool(name) for name in tools]
        server = CheckedServer("git", (), coverage(loaded.groups, loaded.settings, "git", listed))
        flow = covered(loaded.settings, loaded.groups, "git", listed, (), "")
        server = replace(server, unknown_tools=unknown_tools(loaded.settings, tools), flow=flow)
    report = inspect(loaded, environ, server)
    found = (*report.findings, *report.remarks)
    return [f"{one.file}:{one.line}: {'' if one.text.startswith(one.key) else one.key} {one.text}" for one in found]


def is_answered(texts: list[str], place: str, repair: str) -> bool:
    return any(place in text and repair in text for text in texts)


@pytest.mark.parametrize(("text", "place", "repair"), TOML)
def test_a_mistake_in_hookproxy_toml_is_answered(folder: Path, text: str, place: str, repair: str) -> None:
    (folder / "hookproxy.toml").write_text(text)
    found = answers(folder, config="hookproxy.toml")
    assert is_answered(found, place, repair), found


@pytest.mark.parametrize(("text", "place", "repair"), WITH_SERVER)
def test_a_name_that_is_nobodys_is_answered_where_the_server_is_known(
    folder: Path, text: str, place: str, repair: str
) -> None:
    (folder / "hookproxy.toml").write_text(text)
    found = answers(folder, config="hookproxy.toml", tools=TOOLS)
    assert is_answered(found, place, repair), found


@pytest.mark.parametrize(("dialect", "text", "place", "repair"), HOOK_FILES)
def test_a_mistake_in_a_hook_file_is_answered(folder: Path, dialect: str, text: str, place: str, repair: str) -> None:
    (folder / "hooks.json").write_text(text)
    found = answers(folder, hooks=(f"{dialect}=hooks.json",))
    assert is_answered(found, place, repair), found


@pytest.mark.parametrize(("dialect", "printed", "place", "repair"), OUTPUTS)
def test_a_mistake_in_what_a_hook_prints_is_answered(dialect: str, printed: object, place: str, repair: str) -> None:
    one = DIALECTS[dialect]
    result = HookResult(Ended.EXITED, 0, json.dumps(printed).encode())
    verdict = one.read_output(hook("x"), result)
    assert is_answered([*unread(one, result, verdict), verdict.failure], place, repair)


def test_there_are_more_than_66_mistakes() -> None:
    assert len(TOML) + len(WITH_SERVER) + len(HOOK_FILES) + len(OUTPUTS) > 66


def test_a_configuration_without_mistakes_is_answered_with_nothing(folder: Path) -> None:
    text = (
        f'{HOOK}matcher = "git_.*"\n[permissions]\ndefault = "deny"\nallow = ["git_*"]\nask = ["write_file", "Bash"]\n'
    )
    (folder / "hookproxy.toml").write_text(text)
    assert answers(folder, config="hookproxy.toml") == []
    assert answers(folder, config="hookproxy.toml", tools=TOOLS) == []


@pytest.mark.parametrize(
    "rule",
    [
        "Bash(curl * | sh)",
        "Bash(git push --force)",
        "Bash(C:\\windows\\system32 *)",
        "Read(//etc/**)",
        "Bash(git log *)",
        "WebFetch(https://x.example/*)",
        "get_time(when: now)",
        "Bash(rm:*)",
        "delete_*",
        "*",
        "mcp__github__*",
        "mcp__*",
        "Read(**/.env)",
        "resources/read",
    ],
)
def test_a_rule_that_may_be_meant_for_other_servers_is_no_mistake(folder: Path, rule: str) -> None:
    (folder / "hookproxy.toml").write_text(rules(rule))
    assert answers(folder, config="hookproxy.toml", tools=("get_time",)) == []
    assert answers(folder, config="hookproxy.toml") == []
