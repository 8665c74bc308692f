"""Connections, and requests over them: what remote servers, web-service hooks and token endpoints share.

`connect` opens a connection to an `address`, and `connection` sends one HTTP/1.1 request after another on it; `post`
sends a single one. Below them are `epoll_loop` and `tcp`, which read within the event loop's wait. The room checks the
framing of responses, and knows nothing of messages, hooks or tokens.
"""
