"""The hook of the harness: gives its context to the harness at a socket, and prints the verdict that comes back.

An interceptor of the test kit that raises gives nothing: then the hook fails, too. The program that is asked for
approvals does the same, and its exit status says no with a denial.
"""

import json
import socket
import sys

with socket.socket(socket.AF_UNIX) as harness:
    harness.connect(sys.argv[1])
    harness.sendall(sys.argv[2].encode() + b"\n" + sys.stdin.buffer.read())
    harness.shutdown(socket.SHUT_WR)
    verdict = harness.makefile("rb").read()
sys.stdout.buffer.write(verdict)
if sys.argv[2] == "approval" and verdict and json.loads(verdict)["decision"] == "deny":
    sys.exit(2)
sys.exit(0 if verdict else 1)
