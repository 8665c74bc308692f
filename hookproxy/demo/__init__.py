"""What `hookproxy demo` shows at work: a tool server, and three hooks with their settings, as Claude Code has them."""
