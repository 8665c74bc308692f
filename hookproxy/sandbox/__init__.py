"""What a server process may reach: from a table of folders, names and limits to the words that start it confined.

It promises that nothing is reachable which the table and the server's own program do not name. It starts nothing
itself, and knows neither MCP nor the gateway.
"""
