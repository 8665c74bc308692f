"""Where messages come from and go to: one file for each kind of channel.

Bytes are delivered in the event loop's own callback, without a task for each direction. Messages are not parsed here.
"""
