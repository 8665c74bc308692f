"""A service that refuses tools by name, for every agent that asks it: freeze.py PORT TOOL...

Who asks must know FREEZE_TOKEN. Port 0 is any that is free; which one is printed.
"""

import hmac
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FROZEN = frozenset(sys.argv[2:])


class Hook(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept: a new one for each call would cost more than the answer
    disable_nagle_algorithm = True

    def do_POST(self):
        document = self.rfile.read(int(self.headers["Content-Length"]))
        expected = f"Bearer {os.environ['FREEZE_TOKEN']}"
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), expected.encode()):
            self.answer(401, {})
        else:
            self.answer(200, judge(json.loads(document)))

    def answer(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        pass


def judge(document):
    tool = document["tool_name"]
    if tool not in FROZEN:
        return {}
    reason = f"{tool} is frozen until the release is out: tell the user."
    denial = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": denial}


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hook) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
