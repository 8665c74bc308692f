"""The verbs of the command line, one file each; the only room where errors become text."""
