"""`try` and `replay`: the code of a run, without a server.

The same path as in a session, so that what it shows is what would happen.
"""
