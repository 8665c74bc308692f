"""The exact text of JSON messages: read members, splice bytes, normalise, locate a line, check a schema.

Pure and synchronous. Every edit keeps all other bytes (law 2). This package knows JSON, and nothing about MCP,
hooks or files.
"""
