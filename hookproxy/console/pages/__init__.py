"""The pages of the console as HTML: pure functions of what they show."""
