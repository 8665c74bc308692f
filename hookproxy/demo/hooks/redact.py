"""PreToolUse: removes keys from the text of a file before it is written."""

import json
import re
import sys

arguments = json.load(sys.stdin)["tool_input"]
text, found = re.subn(r"sk-[\w-]{12,}", "[key removed]", arguments["text"])

if found:
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "text that looks like a key was removed",
        "updatedInput": arguments | {"text": text},
    }
    print(json.dumps({"hookSpecificOutput": output}))
