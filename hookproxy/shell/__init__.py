"""What a line of shell runs: its simple commands, and what these start in turn.

Promises (law 1): every command that bash would run is among those that are returned, or the line is *unreadable*, with
the reason. Pure, and it never runs anything. It must never know rules, hooks or tools.
"""
