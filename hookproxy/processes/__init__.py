"""Starting, ending and limiting processes: no other room does this.

Each hook is started in a process group of its own, which can be ended as a whole. Knows no dialect and no MCP.
"""
