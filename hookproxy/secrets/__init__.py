"""What looks like a secret, and texts and JSON values in which it is masked. The rules are data: `detectors.toml`.

What it promises: time linear in the length, and never a text in which a secret that it has found is left. It knows
nothing of calls, records or hooks.
"""
