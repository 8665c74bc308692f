#!/usr/bin/env bash
# PreToolUse: refuses destructive commands, and paths of secrets and of the system. Needs jq.
# Exit 2 blocks the call, and the model reads its standard error.
# A list like this stops accidents, and everything can be spelled in too many ways: the rules in hookproxy.toml read the
# same commands as bash does.
set -euo pipefail

reason=$(jq -r '
    def texts(keys): .tool_input | to_entries[] | select(.key | IN(keys)) | .value | .. | strings;
    def is_command: test("command|cmd|arg|script|program|exec|shell|flag"; "i");
    def line: [.tool_input | to_entries[] | select(.key | is_command) | .value | .. | strings] | join(" ")
        | gsub("[\"\\\\\u0027]"; "");  # as a shell reads r\m -"rf"
    [
        ( line | select(
            test("\\brm\\s([^;&|]*\\s)?(-[a-zA-Z]*[rR]|--r)") or
            test("\\bgit\\b[^;&|]*\\spush\\b[^;&|]*\\s(-[a-zA-Z]*f|--force)") or
            test("\\b(curl|wget)\\b.*\\|\\s*(sudo\\s+)?\\w*sh\\b") or
            test("\\b(mkfs|shutdown|reboot)\\b|>\\s*/dev/(sd|nvme)")
          ) | "This command is not allowed here: \(.). Tell the user what you want to achieve with it." ),
        ( texts("path", "paths", "file_path", "source", "destination") | select(
            test("(^|/)\\.(env|ssh|aws|git)(/|\\.|$)") or
            test("^/(etc|proc|sys|boot|root)(/|$)") or
            test("(^|/)\\.\\.(/|$)")
          ) | "This path is off limits: \(.). Stay inside the project, and away from secrets." )
    ] | first // empty
')

if [ -n "$reason" ]; then
    echo "$reason" >&2
    exit 2
fi
