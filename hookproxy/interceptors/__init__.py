"""Offers a policy as MCP interceptors (SEP-2624), so that any host of them can have its messages judged by it.

It promises that a message is judged as behind a proxy, and recorded. It never knows how a host is connected.
"""
