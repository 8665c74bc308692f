"""MCP over HTTP. A remote server is a channel: Streamable HTTP, and the older HTTP+SSE.

`client` decides what is sent when and what a response means: a state machine without I/O, because races live there.
`channel` does its I/O with `pool` and `connection`. `messages`, `mirror_headers` and `sse` read and write the texts.
On the agents' side, `listener` receives requests and checks their framing, and `agent_requests` checks what they say.
Law 2 holds: the JSON text of a message is posted and delivered as it came; an event becomes exactly one line.
"""
