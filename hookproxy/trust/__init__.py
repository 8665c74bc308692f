"""Which files may be believed: each is opened once, hashed, and compared with what was trusted before.

Also finds the administrator's files. Never runs what it reads.
"""
