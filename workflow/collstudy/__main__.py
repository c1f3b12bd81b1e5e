"""Run the command line (cli/main.py) for `python -m collstudy`, unless the study is known to be up to date."""

import signal
import sys

# Ctrl-C while the modules are imported ends this process without a traceback; afterwards main() handles it.
handler = signal.getsignal(signal.SIGINT)
if handler is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from collstudy.cli.unchanged import nothing_to_do  # noqa: E402

if nothing_to_do(sys.argv[1:]):
    sys.exit(0)

# Imported only now because the import takes longer than the check above.
from collstudy.cli.main import main  # noqa: E402

signal.signal(signal.SIGINT, handler)
sys.exit(main())
