"""`python -m collstudy`: the command line (cli/main.py)."""

import sys

from collstudy.cli.main import main

sys.exit(main())
