"""From an audit to the smallest allow list that lets pass what was seen: `hookproxy learn`.

`observations` counts what was called and how it was decided. `generalise` finds the folders, commands and hosts that
calls have in common, and when they have too little in common. `propose` makes rules of them, and tries every rule by
the code that decides in a session. `as_toml` prints them with their evidence.

It promises: what the records show as denied is never allowed by what is learned. Nothing is applied by itself. It knows
of no server, no hook and no session, and reads nothing but what it is given.
"""
