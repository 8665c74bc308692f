"""From verdicts, rules and limits to one decision.

Pure and synchronous. Deny beats ask beats allow, in whatever order the hooks ended. This package never runs a hook,
reads a file or knows a dialect.
"""
