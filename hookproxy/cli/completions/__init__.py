"""Scripts with which bash, zsh and fish complete the command line, made from the parsers that read it.

A script knows verbs, options, the choices of an option, dialects and files. What only this machine knows, such as the
names of servers, it asks `hookproxy completion --values` for: see `known_values`.
"""
