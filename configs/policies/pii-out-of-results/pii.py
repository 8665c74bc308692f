"""Replaces personal data in results, in every text of them."""

import re

from hookproxy.hooks.api import HookInput

PATTERNS = {
    "mail address": re.compile(r"[\w.+%-]+\s?(?:@|\(at\)|\[at\]|%40|\uff20)\s?[\w-]+(?:\.[\w-]+)+"),
    "account number": re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){3,7}(?:[ -]?[A-Z0-9]{1,3})?\b"),
    "card number": re.compile(r"\b\d(?:[ -]?\d){12,18}\b"),
    "social security number": re.compile(r"\b\d{3}-\d{2}-\d{4}\b"),
    "telephone number": re.compile(r"(?<![\w.])(?:\+|00)\d{1,3}(?:[ ()./-]{0,2}\d){6,12}\b|\(\d{3}\) ?\d{3}-\d{4}\b"),
}


def without(text):
    for name, pattern in PATTERNS.items():
        text = pattern.sub(f"[{name}]", text)
    return text


def cleaned(value):
    """The same JSON value without personal data. Binary data (images, sounds) stays as it is."""
    if isinstance(value, str):
        return without(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        is_binary = value.get("type") in ("image", "audio")
        return {key: item if is_binary and key == "data" else cleaned(item) for key, item in value.items()}
    return value


def check(hook_input: HookInput):
    after = cleaned(hook_input.tool_response)
    if after == hook_input.tool_response:
        return None
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedMCPToolOutput": after}}


def check_failure(hook_input: HookInput):
    """An error cannot be replaced, only withheld: a hook that fails does so."""
    if without(hook_input.error) != hook_input.error:
        raise ValueError("the error holds personal data")
