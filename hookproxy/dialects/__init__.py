"""One folder for each hook system: its hook files, the input of its hooks, and what their output means (law 4).

Every folder has the same three files (`hook_file`, `input`, `output`) and its `Dialect` value in `__init__`. To add a
dialect, add such a folder and a line in `registry`. This room never runs a hook, and does not know how one ran.
"""
