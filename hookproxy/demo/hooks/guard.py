"""PreToolUse: blocks every call for a file with secrets."""

import json
import sys
from pathlib import PurePosixPath

path = json.load(sys.stdin)["tool_input"].get("path", "")

if PurePosixPath(path).name.startswith(".env"):
    print(f"{path} holds secrets. Do not use it; ask the user to change it.", file=sys.stderr)
    sys.exit(2)
