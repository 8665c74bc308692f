#!/bin/sh
# beforeShellExecution: refuses commands that delete folders. Cursor reads the decision from standard output.

jq -c '
    [.command | .. | strings] | join(" ") | gsub("[\"\\\\\u0027]"; "")
    | if test("\\brm\\s([^;&|]*\\s)?(-[a-zA-Z]*[rR]|--r)") then
        {permission: "deny", agent_message: "Deleting folders is for people: tell the user which one."}
    else empty end
' || {
    echo "This call could not be judged: jq failed." >&2
    exit 2
}
