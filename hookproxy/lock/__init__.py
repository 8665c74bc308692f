"""What servers say of themselves, pinned in `hookproxy.lock`: how it is described, compared, read and written.

Comparing is pure, and reads one listed entry at a time from its exact bytes. A difference that it cannot explain is
still a difference. Knows nothing of sessions, hooks and settings: what happens to a changed tool is decided above.
"""
