"""What runs when sessionmart is started as a command?"""

from __future__ import annotations

import sys


def main() -> None:
    """The console script: runs the command line and exits with its code."""
    from etl.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
