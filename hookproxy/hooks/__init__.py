"""Selects the hooks for an event, runs them in order, and combines what they decided.

Works the same in front of a server and in a trial. Never knows messages, channels or how a dialect spells anything.
"""
