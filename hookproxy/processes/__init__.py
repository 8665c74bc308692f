"""Starting, ending and limiting processes: the only room that does.

Every process started here is in a group that can be ended whole. Knows no hook, no dialect and no MCP.
"""
