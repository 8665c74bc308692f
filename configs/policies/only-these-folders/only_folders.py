"""Refuses calls with a path outside of FOLDERS."""

import os
import re
from urllib.parse import unquote

from hookproxy.hooks.api import HookInput, deny

FOLDERS = ["."]  # relative ones start from the folder in which hookproxy is started
CONTENT = {"content", "text", "old_text", "new_text", "oldText", "newText", "old_string", "new_string"}
"""Arguments that are written into a file: what they say is not a path."""


def paths(value, name=""):
    """Each text that may be a path: every text under any other name."""
    if isinstance(value, str) and name not in CONTENT:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from paths(item, name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, key)
            if "/" in key or "\\" in key:
                yield key


def is_inside(text, folder):
    """Whether the file of this path lies in one of FOLDERS."""
    text = unquote(re.sub(r"(?i)^\s*file:(//(localhost)?(?=/))?", "", text)).strip()
    if "\0" in text or "%" in text or ("\\" in text and ".." in text) or text.startswith(("~", "$")):
        return False  # read in different ways by different programs
    path = os.path.realpath(os.path.join(folder, text))
    allowed = [os.path.realpath(os.path.join(folder, os.path.expanduser(one))) for one in FOLDERS]
    return any(os.path.commonpath([path, one]) == one for one in allowed)


def check(hook_input: HookInput):
    for text in paths(hook_input.tool_input):
        if not is_inside(text, hook_input.cwd or os.getcwd()):
            return deny(f"{text!r} is not in the folders that may be used: {', '.join(FOLDERS)}. Use a path in them.")
    return None
