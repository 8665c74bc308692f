"""OAuth 2.1 on both sides: logins at remote servers, and who sends a request to a gateway.

As a client: `log_in` and what only it uses import the SDK. `credentials`, which a run uses, imports neither the SDK nor
an HTTP client: it gets a function that sends one POST. As a server: `authenticate` decides by the tokens of a file
(`token_file`, `bearer_tokens`) and of an issuer (`token_issuer`, `issuer_keys`, `verify_jwt`), and `resource_metadata`
tells agents where to log in. A gateway issues no tokens but those of its file. `jwt_signatures` serves both sides.

No token is ever in an address, a message, a log or the audit, and each goes only to the server that it was issued for.
"""
