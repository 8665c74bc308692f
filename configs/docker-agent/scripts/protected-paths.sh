#!/bin/bash
# pre_tool_use: only their tools write lock files, and only the build writes generated files.

jq -c '
    .tool_input.path as $path
    | if $path | test("(^|/)(package-lock\\.json|uv\\.lock|Cargo\\.lock|dist/.*|.*\\.min\\.js)$") then
        {decision: "block", reason: "\($path) is generated: change its source, and ask the user to run the build."}
    elif $path | test("^/|(^|/)\\.\\.(/|$)") then
        {hook_specific_output: {hook_event_name: "pre_tool_use", permission_decision: "ask",
                                permission_decision_reason: "\($path) is outside of the project."}}
    else {} end
'
