"""What the command `hookproxy` and `python -m hookproxy` start."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
