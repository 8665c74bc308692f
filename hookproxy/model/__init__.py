"""The nouns that every room shares: hooks, events, verdicts, decisions, settings, aliases, errors.

Frozen values without behaviour or I/O. Imports nothing above `jsonrpc`.
"""
