"""Finds problems of the configuration before anything runs: hooks that cannot start, never match or are ignored."""
