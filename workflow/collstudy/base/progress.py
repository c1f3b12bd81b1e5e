"""Print the progress of a run."""

from __future__ import annotations

import os
from typing import TextIO


def tell(line: str, stream: TextIO) -> None:
    """Print a line. If nobody reads it any longer (`./study run | head`, a closed terminal), the run goes on without output."""
    try:
        print(line, file=stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
