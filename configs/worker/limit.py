"""At most three calls of one tool: a worker remembers what it has seen."""

import json
import sys
from collections import Counter

seen = Counter()
for line in sys.stdin:
    tool = json.loads(line)["tool_name"]
    seen[tool] += 1
    answer = {"decision": "block", "reason": f"{tool} was called three times already."} if seen[tool] > 3 else {}
    print(json.dumps(answer), flush=True)
