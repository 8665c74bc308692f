"""PostToolUse and PostToolUseFailure: comments on what was written, and helps after a failed call."""

import json
import sys

hook_input = json.load(sys.stdin)
event, arguments = hook_input["hook_event_name"], hook_input["tool_input"]
comment = ""

if event == "PostToolUseFailure":
    comment = "Call list_files first: it lists the files that exist."
elif not arguments["text"].endswith("\n"):
    comment = f"{arguments['path']} does not end with a line feed. Write it again with one."

if comment:
    print(json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": comment}}))
