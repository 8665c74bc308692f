"""A hand-written MCP server with tasks of both eras, which the SDK does not have; it is started as a process.

The agent ends a task with the notification `end`: the task's id, and a `result`, an `error` or a `status`. With
`notify`, the server sends a notification about it. Each line that it gets is appended to the file that the variable
E2E_LOG names.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

Json = dict[str, Any]

STATELESS = "io.modelcontextprotocol/protocolVersion"
RELATED = "io.modelcontextprotocol/related-task"


class Task:
    def __init__(self, task_id: str, extension: bool) -> None:
        self.extension = extension
        self.state: Json = {"taskId": task_id, "status": "working", "createdAt": "2026-01-01T00:00:00Z"}
        self.outcome: Json = {}
        """`result` or `error`, once it has ended."""
        self.waiting: list[object] = []
        """Ids of `tasks/result` requests, which wait for its end."""

    @property
    def detailed(self) -> Json:
        return self.state | self.outcome if self.extension else self.state


def send(message: Json) -> None:
    rest = memoryview(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    while rest:
        rest = rest[os.write(1, rest) :]


class Server:
    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.log = os.open(os.environ.get("E2E_LOG", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def live(self) -> None:
        for line in sys.stdin.buffer:
            os.write(self.log, line)
            message = json.loads(line)
            method, params = message.get("method", ""), message.get("params") or {}
            if "id" not in message:
                if method == "end":
                    self.end(**params)
                elif method == "quit":
                    os._exit(params["status"])
            elif method.startswith("tasks/"):
                self.asked(message["id"], method.removeprefix("tasks/"), params)
            elif method == "tools/call":
                send({"id": message["id"], "result": self.call(params)})
            else:
                send({"id": message["id"], "result": self.initialize_result(params) if method == "initialize" else {}})

    def initialize_result(self, params: Json) -> Json:
        tasks: Json = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        return {
            "protocolVersion": params.get("protocolVersion", "2025-11-25"),
            "capabilities": {"tools": {}, "tasks": tasks},
            "serverInfo": {"name": "tasks", "version": "1"},
        }

    def call(self, params: Json) -> Json:
        extension = STATELESS in params.get("_meta", {})
        if not (extension or "task" in params):
            return {"content": [{"type": "text", "text": "no task"}]}
        task_id = f"task-{len(self.tasks) + 1}"
        task = self.tasks[task_id] = Task(task_id, extension)
        return {"resultType": "task", **task.state} if extension else {"task": task.state}

    def asked(self, request: object, what: str, params: Json) -> None:
        task = self.tasks.get(params.get("taskId", ""))
        if what == "list":
            send({"id": request, "result": {"tasks": [one.state for one in self.tasks.values()]}})
        elif task is None:
            send({"id": request, "error": {"code": -32602, "message": "Unknown task"}})
        elif what == "cancel" and task.state["status"] != "working":
            send({"id": request, "error": {"code": -32602, "message": "The task has ended"}})
        elif what == "get":
            send({"id": request, "result": task.detailed | ({"resultType": "complete"} if task.extension else {})})
        elif what == "result":
            task.waiting.append(request)
            self.answer_waiting(task)
        else:
            if what == "cancel":
                task.state["status"] = "cancelled"
                task.outcome = {"error": {"code": -32000, "message": "Cancelled"}} if not task.extension else {}
            send({"id": request, "result": {"resultType": "complete"} if task.extension else task.state})
            self.answer_waiting(task)

    def answer_waiting(self, task: Task) -> None:
        while task.outcome and task.waiting:
            meta = {"_meta": {RELATED: {"taskId": task.state["taskId"]}}}
            outcome = {key: value | meta if key == "result" else value for key, value in task.outcome.items()}
            send({"id": task.waiting.pop(0), **outcome})

    def end(self, task: str, notify: bool = False, **outcome: Json) -> None:
        one = self.tasks[task]
        one.outcome = outcome
        one.state["status"] = "failed" if "error" in outcome else "completed"
        if notify:
            method = "notifications/tasks" if one.extension else "notifications/tasks/status"
            send({"method": method, "params": one.detailed})
        self.answer_waiting(one)


if __name__ == "__main__":
    Server().live()
