"""Edits agents' own configuration files, byte for byte, for `wrap` and `unwrap`.

New text is parsed again before it is written, and everything else must be unchanged. A file that cannot be parsed is
never written.
"""
