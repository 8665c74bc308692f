"""What a person sees of all runs: a web page and a view for the terminal, and the answers to approvals that wait.

It reads what runs publish (`live`), the audit and the configuration. It changes no file, and no call of its own runs.
"""
