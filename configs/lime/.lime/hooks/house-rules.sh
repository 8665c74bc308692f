#!/bin/sh
# PreToolUse: the rules of this project, for every tool. Lime gives the tool's input as a variable.
# Exit 2 denies the call, and the model reads its standard error; JSON can add to the tool's result.

if [ "$HOOK_TRUNCATED" = 1 ]; then
    echo "This input is too long to be judged. Send less at once." >&2
    exit 2
fi

case $HOOK_TOOL_INPUT in
    *"git push"*main*)
        echo "Pushing to main is for people. Push a branch, and tell the user which one." >&2
        exit 2
        ;;
    *"npm install"*)
        echo '{"hookSpecificOutput": {"additionalContext": "Note: this project uses pnpm, not npm."}}'
        ;;
esac
