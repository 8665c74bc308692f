"""What several dialects have in common: strict reading of files, handler types, JSON in and out."""
