"""How a hook runs: one file for each handler type. Every runner returns a `HookResult`.

A new runner is a file like its neighbours and a line in `registry`. Runners know neither dialects nor verdicts.
"""
