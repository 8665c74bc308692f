"""The server and the hooks that `hookproxy demo` runs: ordinary ones, as others write them, unaware of hookproxy."""
