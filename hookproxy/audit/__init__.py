"""The record of what happened to calls: writing, chaining, signing and reading audit files, and telemetry.

One write for each call; a line that cannot be written is reported (law 3). Audit never changes a decision.
"""
