"""PreToolUse: replaces keys and tokens in the arguments of a call, however deep they lie."""

import json
import re
import sys

SECRETS = re.compile(
    r"\bsk-[\w-]{16,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b"  # Amazon Web Services
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)


def redacted(value):
    """The same value without secrets in its texts."""
    if isinstance(value, str):
        return SECRETS.sub("[removed]", value)
    if isinstance(value, list):
        return [redacted(item) for item in value]
    if isinstance(value, dict):
        return {key: redacted(item) for key, item in value.items()}
    return value


before = json.load(sys.stdin)["tool_input"]
after = redacted(before)

if after != before:
    answer = {
        "hookEventName": "PreToolUse",
        "updatedInput": after,  # takes the place of all arguments
        "additionalContext": "Secrets in the arguments were replaced by [removed] before the tool ran.",
    }
    print(json.dumps({"hookSpecificOutput": answer}))
