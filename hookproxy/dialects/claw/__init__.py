"""claw-code."""
