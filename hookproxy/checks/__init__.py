"""What `hookproxy check` finds before anything runs: hooks that cannot start, never match or are left out in part."""
