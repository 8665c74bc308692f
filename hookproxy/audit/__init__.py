"""The record of what happened: writing, chaining and reading audit files, and telemetry.

One write for each call; what cannot be written is reported (law 3). Never changes what is decided about a call.
"""
