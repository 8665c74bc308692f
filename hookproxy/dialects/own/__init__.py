"""hookproxy's own hooks: the `[[hooks.EVENT]]` tables of hookproxy.toml, which work as Claude Code's do."""
