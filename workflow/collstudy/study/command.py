"""What the command of a program says to its launcher: ranks and nodes."""

from __future__ import annotations

import itertools
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from collstudy.study.names import LAUNCHERS

RANKS = ("-n", "-np", "--np", "--ntasks")
#: Ranks on each node, in Open MPI (also `--map-by ppr:2:node`), in MPICH and Intel MPI, and in Slurm. Slurm's -N is a number of nodes.
RANKS_PER_NODE = ("-N", "-npernode", "--npernode", "-ppn", "-perhost", "--ntasks-per-node")
NODES = ("-N", "--nodes")


def ranks_in(words: list[str]) -> int | None:
    """Return the number of ranks from the options of a launcher's command; None if it is missing."""
    for option, value in _options(_from_launcher(words)):
        if option in RANKS and value.isdecimal():
            return int(value)
    return None


def nodes_in(words: list[str], ranks: int, folder: Path) -> int | None:
    """Return the number of nodes on which a launcher's command, run in *folder*, puts its ranks; None if it does not say."""
    words = _from_launcher(words)
    slurm = bool(words) and Path(words[0]).name == "srun"
    for option, value in _options(_before_program(words, folder)):
        resource = re.match(r"ppr:(\d+):node\b", value)
        if slurm and option in NODES and value.isdecimal():
            return int(value)
        if resource or (option in RANKS_PER_NODE and value.isdecimal()):
            return math.ceil(ranks / max(1, int(resource[1] if resource else value)))
    return None


def _from_launcher(words: list[str]) -> list[str]:
    """Return the words from the launcher on: a command before it has options of its own."""
    return list(itertools.dropwhile(lambda word: Path(word).name not in LAUNCHERS, words))


def _before_program(words: list[str], folder: Path) -> list[str]:
    """Return the words before the program, which has options of its own. The value of an option is none: a partition may be called
    `test`.
    """
    for at, (before, word) in enumerate(itertools.pairwise(words), 1):
        found = shutil.which(folder / word) or shutil.which(word)
        if found and ("/" in word or not before.startswith("-")):
            return words[:at]
    return words


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with the next one, and the parts of `--option=value` and of srun's `-N2`."""
    slurm = bool(words) and Path(words[0]).name == "srun"
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        option, equals, value = word.partition("=")
        if slurm and (joined := re.fullmatch(r"(-[nN])(\d+)", word)):
            yield joined[1], joined[2]
        else:
            yield (option, value) if equals and word.startswith("--") else (word, following)
