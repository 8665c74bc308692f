"""From verdicts, rules and limits to one decision.

Pure and synchronous: deny beats ask beats allow, whatever order hooks ended in. Never runs a hook, reads a file or
knows a dialect.
"""
