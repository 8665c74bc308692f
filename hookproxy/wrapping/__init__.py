"""Editing agents' own configuration files, byte for byte: `wrap` and `unwrap`.

What is written is read again first, and holds everything else as it was. Never writes a file that it could not read.
"""
