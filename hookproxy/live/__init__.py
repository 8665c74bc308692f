"""What a run shows to consoles while it runs: who runs, its calls as they happen, and the approvals that wait.

A run without a console pays for one socket at its start, and for nothing else. Only the account of the run may look.
"""
