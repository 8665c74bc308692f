"""Which hooks are asked about an event, in which order, and what they decided together.

Works the same behind a server and in a trial. Never knows messages, channels or how a dialect spells anything.
"""
