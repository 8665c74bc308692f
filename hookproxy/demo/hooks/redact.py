"""PreToolUse: takes keys out of what is about to be written."""

import json
import re
import sys

arguments = json.load(sys.stdin)["tool_input"]
text, found = re.subn(r"sk-[\w-]{12,}", "[key removed]", arguments["text"])

if found:
    answer = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "what looks like a key was taken out of the text",
        "updatedInput": arguments | {"text": text},
    }
    print(json.dumps({"hookSpecificOutput": answer}))
