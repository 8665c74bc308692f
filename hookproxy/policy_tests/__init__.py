"""Tests of a policy, for `hookproxy test` and `hookproxy.testing`: cases, their runs, coverage and mutants.

A case is decided by `trial`, that is by the code of a session, and by nothing of the machine but the files that are
named. It never knows how anything is printed.
"""
