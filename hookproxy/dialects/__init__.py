"""One module or package for each hook system: its hook files, its hooks' input, and what their output means (law 4).

Its value `DIALECT` is the whole description, and `CURRENT` that of a later edition; `AGENT_SIDE` describes its agent.
The registry and all lists are derived from them (`index`). This room never runs a hook, nor knows how one ran.
"""
