"""What several dialects share: strict reading of files, handler types, and JSON input and output."""
