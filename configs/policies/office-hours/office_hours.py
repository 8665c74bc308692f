"""Refuses tools that change something outside of office hours."""

import re
from zoneinfo import ZoneInfo

from hookproxy.hooks.api import HookInput, deny

WHERE = "Europe/Berlin"
DAYS = range(0, 5)  # Monday is 0
HOURS = range(8, 18)
READING = re.compile(r"(?!.*_(and|or)_)(get|list|read|search|show|describe|find|view)(_[a-z0-9_]*)?")
"""Names of tools that only read."""


def is_open(now):
    return now.weekday() in DAYS and now.hour in HOURS


def check(hook_input: HookInput):
    tool = hook_input.tool_name
    if READING.fullmatch(tool):
        return None
    now = hook_input.time.astimezone(ZoneInfo(WHERE))  # an unknown zone raises: the call is refused
    if is_open(now):
        return None
    return deny(f"{tool} runs in office hours only: Monday to Friday, 8 to 18, {WHERE}. Tell the user.")
