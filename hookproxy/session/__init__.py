"""One agent and one server: the relay, the life of a call, approvals, and the end.

One task for each judged call; only the router's table is shared (laws 1 and 2). Never knows a dialect.
"""
