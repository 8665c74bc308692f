"""Logins at remote servers: OAuth 2.1, and the tokens that a login leaves.

`log_in` and what only it uses import the SDK. `credentials`, which a run uses, imports neither the SDK nor an HTTP
client: it gets a function that sends one POST. No token is ever in an address, a message, a log or the audit, and each
goes only to the server that it was issued for.
"""
