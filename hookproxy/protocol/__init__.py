"""MCP as it passes between agent and server, in both eras.

Pure and synchronous: the router owns the table of calls in flight and says what is to be done with each message; other
rooms do it. Never touches a descriptor, a clock or a hook.
"""
