"""Refuses changes to protected branches."""

import re
import subprocess

from hookproxy.hooks.api import HookInput, deny

PROTECTED = re.compile(r"(?i)(main|master|trunk|release([/-].*)?)")
CHANGES = re.compile(
    r"(?is)\bgit\b.*\b(commit|push|merge|rebase|reset|cherry-pick|revert|am|update-ref|branch|send-pack)\b"
)


def is_protected(branch):
    return PROTECTED.fullmatch(re.sub(r"^\s*\+?(refs/heads/|heads/)?", "", branch).strip()) is not None


def refused(branch):
    return deny(f"{branch} is protected: make a branch, commit there, and ask the user for a review.")


def current_branch(folder):
    """The branch that is checked out. Raises OSError, CalledProcessError, TimeoutExpired: then the call is refused."""
    command = ["git", "-C", folder, "symbolic-ref", "--quiet", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout.strip()


def check_repository(hook_input: HookInput):
    folder = next(
        (hook_input.tool_input[name] for name in ("repo_path", "path", "cwd") if name in hook_input.tool_input), None
    )
    if not isinstance(folder, str):
        return deny("The call does not say in which repository it works, so its branch is not known.")
    branch = current_branch(folder)
    return refused(branch) if is_protected(branch) else None


def check_service(hook_input: HookInput):
    branches = [hook_input.tool_input[name] for name in ("branch", "ref", "base") if name in hook_input.tool_input]
    if not branches or not all(isinstance(branch, str) and branch for branch in branches):
        return deny("Name the branch: without one, the service would change its default branch.")
    return next((refused(branch) for branch in branches if is_protected(branch)), None)


def check_command(hook_input: HookInput):
    command = hook_input.tool_input.get("command")
    if not isinstance(command, str):
        return deny("The command cannot be read.")
    plain = re.sub(r"\\\n|\$\{?IFS\}?|\$@", " ", command)
    if not CHANGES.search(re.sub(r"[\\'\"]", "", plain)):
        return None
    words = re.split(r"[\s:+=;|&]+", re.sub(r"[\\'\"]", "", plain))
    named = next((word for word in words if is_protected(word)), None)
    if named:
        return refused(named)
    if re.search(r"[$`]|\b(cd|checkout|switch|worktree)\b|(?<!\S)-C|--(git-dir|work-tree|all|mirror)", plain):
        return deny(
            "On which branch this works is not certain: run one plain git command, in the folder of the session."
        )
    branch = current_branch(hook_input.cwd or ".")
    return refused(branch) if is_protected(branch) else None
