#!/bin/sh
# PreToolUse: refuses commands that delete folders. Crush reads the decision from standard output.

jq -c '
    [.tool_input | .. | strings] | join(" ") | gsub("[\"\\\\\u0027]"; "")
    | if test("\\brm\\s([^;&|]*\\s)?(-[a-zA-Z]*[rR]|--r)") then
        {decision: "deny", reason: "Deleting folders is for people: tell the user which one."}
    else empty end
' || {
    echo "This call could not be judged: jq failed." >&2
    exit 2
}
