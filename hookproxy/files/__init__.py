"""How files are created and replaced, and folders locked, so that several processes may change the same file.

Knows only paths, bytes and modes: what a file is for, and who may change it, is the caller's subject.
"""
