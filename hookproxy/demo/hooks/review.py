"""PostToolUse and PostToolUseFailure: comments on what was written, and helps where a call failed."""

import json
import sys

occasion = json.load(sys.stdin)
event, arguments = occasion["hook_event_name"], occasion["tool_input"]
comment = ""

if event == "PostToolUseFailure":
    comment = "Call list_files first: it tells which files there are."
elif not arguments["text"].endswith("\n"):
    comment = f"{arguments['path']} does not end with a line feed. Write it again with one."

if comment:
    print(json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": comment}}))
