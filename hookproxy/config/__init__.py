"""hookproxy.toml and hook files become settings and groups of hooks, or one clear error (law 3).

The only room that imports pydantic, and only where a hookproxy.toml is read. Never runs a hook.
"""
