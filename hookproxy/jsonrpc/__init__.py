"""The exact text of JSON messages: read members, splice bytes, normalise, locate a line, check a schema.

Pure and synchronous. What is not changed keeps every byte (law 2). Knows JSON and nothing of MCP, hooks or files.
"""
