"""What several dialects share: strict reading of files, handler types, and JSON input and output.

Most systems belong to a family, and its base does the work: `command_file` reads hook files whose events list commands,
flat or in groups, with what differs as data; `claude_envelope` reads output of Claude Code's kind; `exit_status` reads
that of hooks that decide by their exit status, with `decision_json` if they may print a decision as well.
"""
