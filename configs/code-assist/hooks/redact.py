"""PostToolUse and PostToolUseFailure: keeps keys and tokens in a tool's output from the model."""

import json
import re
import sys

SECRETS = re.compile(
    r"\bsk-[\w-]{16,}"  # OpenAI, Anthropic, Stripe
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b"  # Amazon Web Services
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)

output = json.load(sys.stdin)["tool_output"] or ""
clean, removed = SECRETS.subn("[removed]", output)

if removed:
    answer = {
        "updated_output": clean,
        "additional_context": "Secrets in this output were replaced by [removed]. The user can look them up.",
        "status_message": f"{removed} removed from the output",
    }
    json.dump(answer, sys.stdout)
