"""Where data may go: which calls are sources and sinks, what a session has read, and which calls carry it on.

What it promises: the same calls in the same order at the same times have the same decisions, and where it cannot be
said what a call carries, it carries everything (law 3). It knows nothing of hooks, messages in flight or people.
"""
