#!/bin/sh
# PreToolUse: refuses commands that delete folders. Augment reads the decision from standard output.

jq -c '
    [.tool_input | .. | strings] | join(" ") | gsub("[\"\\\\\u0027]"; "")
    | if test("\\brm\\s([^;&|]*\\s)?(-[a-zA-Z]*[rR]|--r)") then
        {hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny",
         permissionDecisionReason: "Deleting folders is for people: tell the user which one."}}
    else empty end
' || {
    echo "This call could not be judged: jq failed." >&2
    exit 2
}
