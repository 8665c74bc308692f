"""What looks like a secret, by rules that are data: in records (`mask`), and before a model sees it (`finder`).

What it promises: time linear in the length, and never a text in which a secret that it has found is left. It knows
nothing of calls, records or hooks, and reads no value from anywhere: whoever uses it gives them.
"""
