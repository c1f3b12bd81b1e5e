"""`python -m collstudy`: the command line (cli/main.py), unless it is known that a run has nothing to do."""

import sys

from collstudy.cli.unchanged import nothing_to_do

if nothing_to_do(sys.argv[1:]):
    sys.exit(0)

# Only now: it takes longer than the answer.
from collstudy.cli.main import main  # noqa: E402

sys.exit(main())
