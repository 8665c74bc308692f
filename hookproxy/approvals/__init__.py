"""How approvals that wait are reported to people outside of the agent: a notification of the desktop, and a webhook.

Nothing here approves anything: an answer goes to whoever asks, where the first one counts. Nothing of it is imported
unless it is configured, and it must never know sessions or policies.
"""
