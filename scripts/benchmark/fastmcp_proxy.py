"""fastmcp's own proxy in front of a stdio server: what a user would pick instead, as it is documented.

Usage: fastmcp_proxy.py COMMAND [ARG...]
"""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

if __name__ == "__main__":
    create_proxy(StdioTransport(sys.argv[1], sys.argv[2:])).run("stdio", show_banner=False)
