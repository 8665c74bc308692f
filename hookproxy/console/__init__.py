"""The console: what passes through all runs of this user, what waits for an answer, what was, and what is configured.

It reads what runs publish (`live`), the audit and the configuration. It changes no file, and no call of its own runs.
"""
