"""`python -m broker` and the installed command `barnabas` are the same."""

import sys

from broker.cli import main

if __name__ == "__main__":
    sys.exit(main())
