"""code-assist."""
