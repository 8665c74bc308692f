"""Refuses each `git push` that is not plainly harmless."""

import re

from hookproxy.hooks.api import HookInput, commands, deny

PUSH = re.compile(r"(?i)\bgit\b.*\b(push|send-pack)\b|\b(remote\.\S+|push)\.(push|mirror)\b", re.DOTALL)
HARMLESS = re.compile(
    r"git( -C [\w./-]+)? push( -[uqvn]| --set-upstream| --follow-tags| --tags| --dry-run| --quiet| --verbose)*"
    r"( (?!-)[\w./@-]+){0,2}( 2>&1)?"  # a remote and a branch: no "+", no ":", no further option
)
REASON = (
    "Only a plain git push is allowed here, such as git push -u origin BRANCH: no force, no deletion. Ask the user."
)


def check_command(hook_input: HookInput):
    command = hook_input.tool_input.get("command")
    if not isinstance(command, str):
        return deny("The command cannot be read.")
    plain = re.sub(r"\\\n|\$\{?IFS\}?|\$@", " ", command)
    plain = re.sub(r"[\\'\"]", "", plain)  # as a shell reads gi"t" pu\sh
    started = [" ".join(words) for words in commands(command).commands]  # also what sh -c, env and the like run
    if not PUSH.search(plain) and not any(map(PUSH.search, started)):
        return None
    parts = [part.strip() for part in re.split(r"&&|\|\||[;|\n]", command)]
    pushes = [part for part in (*parts, *started) if PUSH.search(re.sub(r"[\\'\"]", "", part))]
    if pushes and all(map(HARMLESS.fullmatch, pushes)):
        return None
    return deny(REASON)


def check_tool(hook_input: HookInput):
    for name, value in hook_input.tool_input.items():
        harmful = re.search(r"(?i)force|delete|mirror|prune", name) and value not in (False, None)
        if harmful or re.search(r"(^|[\s'\"])[+:-]", str(value)):
            return deny(REASON)
    return None
