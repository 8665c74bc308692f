"""What `hookproxy demo` shows: an ordinary server and ordinary hooks, as others write them; they know nothing of us."""
