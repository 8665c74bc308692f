"""A remote server as a channel: MCP's Streamable HTTP, and the older HTTP+SSE, on the server's side.

`client` decides what is sent when and what a response means: a state machine without I/O, because races live there.
`channel` does its I/O with `pool` and `connection`. `messages`, `mirror_headers` and `sse` read and write the texts.
Law 2 holds: the JSON text of a message is posted and delivered as it came; an event becomes exactly one line.
"""
