"""What `hookproxy check` finds before anything runs: hooks that cannot start, never match, or cannot do what they say."""
