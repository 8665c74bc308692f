"""One folder for each hook system: its files, what its hooks are given, what their output means (law 4).

Every folder has the same three files (`hook_file`, `input`, `output`) and its `Dialect` value in `__init__`; adding one
is a folder like its neighbours and a line in `registry`. Never runs a hook, and never knows how one ran.
"""
