"""fastmcp's own proxy in front of a server: what a user would pick instead, as it is documented.

Usage: fastmcp_proxy.py [--http=PORT] COMMAND [ARG...], or fastmcp_proxy.py URL
"""

import sys

from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.server import create_proxy

if __name__ == "__main__":
    words = sys.argv[1:]
    port = int(words.pop(0).partition("=")[2]) if words[0].startswith("--http=") else 0
    command, *args = words
    is_url = command.startswith("http://")
    transport = StreamableHttpTransport(command) if is_url else StdioTransport(command, args)
    proxy = create_proxy(transport)
    if port:
        proxy.run("http", show_banner=False, port=port, path="/mcp", log_level="error")
    else:
        proxy.run("stdio", show_banner=False)
