"""Tries calls for `try` and `replay` without a server, with the code of a real session.

The path is the same as in a session, so the results show what would happen.
"""
