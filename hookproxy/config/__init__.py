"""Reads hookproxy.toml and hook files into settings and groups of hooks, or raises one clear error (law 3).

This is the only package that imports pydantic, and it does so only to explain what is wrong with a
hookproxy.toml. It never runs a hook.
"""
