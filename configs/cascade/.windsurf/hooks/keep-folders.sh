#!/bin/sh
# pre_run_command: refuses commands that delete folders. Exit 2 denies, and Cascade reads standard error.

if ! jq -e '
    [.tool_info.command_line | .. | strings] | join(" ") | gsub("[\"\\\\\u0027]"; "")
    | test("\\brm\\s([^;&|]*\\s)?(-[a-zA-Z]*[rR]|--r)") | not
' > /dev/null; then
    echo "Deleting folders is for people: tell the user which one." >&2
    exit 2
fi
