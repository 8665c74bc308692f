"""Claude Code: settings files, hooks.json of plugins."""
