"""How a hook runs, one file for each handler type; every one gives the same `HookResult`.

Adding one is a file like its neighbours and a line in `registry`. Never knows a dialect or what a hook decided.
"""
