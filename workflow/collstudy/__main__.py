"""Run the command line (cli/main.py) for `python -m collstudy`, unless the study is known to be up to date."""

import sys

from collstudy.cli.unchanged import nothing_to_do

if nothing_to_do(sys.argv[1:]):
    sys.exit(0)

# Imported only now because the import takes longer than the check above.
from collstudy.cli.main import main  # noqa: E402

sys.exit(main())
