"""A server over stdio that says something else of itself whenever it is asked: what `params._meta.say` names.

Its only argument is a file with a list of tables: results by method. It answers a call with "ran" and the tool's name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def result(says: list[dict[str, Any]], message: dict[str, Any]) -> object:
    params = message.get("params", {})
    ran = {"content": [{"type": "text", "text": f"ran {params.get('name')}"}]}
    return says[params.get("_meta", {}).get("say", 0)].get(message["method"], ran)


def main() -> None:
    says = json.loads(Path(sys.argv[1]).read_text())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(says, message)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
