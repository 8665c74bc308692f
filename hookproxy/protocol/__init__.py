"""MCP messages between agent and server, in both eras.

Pure and synchronous: the router owns the table of calls in flight and decides the action for each message; `session`
performs it. This package never touches a descriptor, a clock or a hook.
"""
