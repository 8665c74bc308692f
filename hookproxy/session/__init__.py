"""One agent and one server: the relay, the life of a call, approvals, and the end.

Each call that hooks see has a task of its own; only the router's table is shared (laws 1 and 2). Never knows a dialect.
"""
