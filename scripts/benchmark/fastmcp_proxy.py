"""fastmcp's own proxy in front of a server: what a user would pick instead, as it is documented.

Usage: fastmcp_proxy.py COMMAND [ARG...], or fastmcp_proxy.py URL
"""

import sys

from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.server import create_proxy

if __name__ == "__main__":
    command, *args = sys.argv[1:]
    is_url = command.startswith("http://")
    transport = StreamableHttpTransport(command) if is_url else StdioTransport(command, args)
    create_proxy(transport).run("stdio", show_banner=False)
