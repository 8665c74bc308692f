"""Where messages come from and go to, one file for each kind of connection.

Calls back with lines in the event loop's own callback, without a task for each direction; never reads a message.
"""
