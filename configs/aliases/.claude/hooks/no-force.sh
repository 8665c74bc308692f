#!/bin/bash
# Keeps history: a push with --force becomes one with --force-with-lease, and a hard reset is refused.
input=$(cat)
command=$(jq -r '.tool_input.command' <<<"$input") || exit 1
if [[ $command == *"git reset --hard"* ]]; then
    echo "a hard reset loses work: commit or stash it first" >&2
    exit 2
fi
if [[ $command =~ git\ push.*--force($|\ ) ]]; then
    jq '{hookSpecificOutput: {hookEventName: "PreToolUse",
        updatedInput: (.tool_input | .command |= gsub("--force(?=$| )"; "--force-with-lease"))}}' <<<"$input"
fi
