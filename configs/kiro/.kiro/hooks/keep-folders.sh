#!/bin/sh
# PreToolUse: refuses commands that delete folders. Exit 2 denies, and Kiro reads standard error.

if ! jq -e '
    [.tool_input | .. | strings] | join(" ") | gsub("[\"\\\\\u0027]"; "")
    | test("\\brm\\s([^;&|]*\\s)?(-[a-zA-Z]*[rR]|--r)") | not
' > /dev/null; then
    echo "Deleting folders is for people: tell the user which one." >&2
    exit 2
fi
