"""Decides which files may be used: each one is opened once, hashed, and compared with what was trusted before.

Also finds and checks the administrator's files. It never runs what it reads.
"""
