"""No call with more than 10,000 characters of arguments."""

import json
import sys

document = json.load(sys.stdin)
size = len(json.dumps(document["tool_input"]))
if size > 10_000:
    print(f"{size} characters are too many: split the call.", file=sys.stderr)
    sys.exit(2)
