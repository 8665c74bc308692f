#!/bin/sh
# PreToolUse: refuses commands that delete folders. VS Code runs it for every tool, and reads standard output.

jq -c '
    [select(.tool_name == "run_in_terminal").tool_input | .. | strings] | join(" ") | gsub("[\"\\\\\u0027]"; "")
    | if test("\\brm\\s([^;&|]*\\s)?(-[a-zA-Z]*[rR]|--r)") then
        {hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny",
         permissionDecisionReason: "Deleting folders is for people: tell the user which one."}}
    else empty end
' || {
    echo "This call could not be judged: jq failed." >&2
    exit 2
}
