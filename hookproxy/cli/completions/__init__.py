"""Scripts with which bash, zsh and fish complete the command line."""
