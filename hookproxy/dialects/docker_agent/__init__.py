"""docker agent."""
