#!/usr/bin/env bash
# PostToolUse: reads what was just written, and tells the model what is wrong with it. Needs jq, and python3 for *.py.
# The tool has run, so exit 2 blocks nothing: standard error is added to the tool's result.
set -euo pipefail

hook_input=$(cat)
cd -- "$(jq -r .cwd <<<"$hook_input")"
path=$(jq -r '.tool_input | .path // .file_path // empty | strings' <<<"$hook_input")
[ -f "$path" ] || exit 0

case $path in
    *.json) check=(jq empty) ;;
    *.sh) check=(bash -n) ;;
    *.py) check=(python3 -c 'import ast, sys; ast.parse(sys.stdin.buffer.read())') ;;
    *) exit 0 ;;
esac

if ! complaint=$("${check[@]}" <"$path" 2>&1); then
    echo "$path was written, but is broken: $(tail -n 1 <<<"$complaint"). Repair it." >&2
    exit 2
fi
