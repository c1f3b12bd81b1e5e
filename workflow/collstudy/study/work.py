"""Units of work: cells, traces, replays and runs. Each has an identity, a digest of it, and a place in the store."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys and no blanks, so that equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def content_digest(value: Any) -> str:
    """Return the SHA-256 digest of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def verb(works: Iterable[Work], ending: str = "e") -> str:
    """Return `measure`, `simulate` or both, with an *ending* (`e`, `ed`, `ing`), depending on how the numbers are obtained."""
    stems = sorted({"simulat" if work.deterministic else "measur" for work in works}) or ["measur"]
    return " and ".join(stem + ending for stem in stems)


def counted(works: Iterable[Work]) -> str:
    """Return their number and kinds: `1 cell`, `12 traces and replays`."""
    kinds = Counter(work.noun for work in works)
    several = "s" * (kinds.total() != 1)
    return f"{kinds.total()} {' and '.join(noun + several for noun in kinds or ['cell'])}"


class Work(ABC):
    """A unit of work: it is done once or as often as its policy requires, and its result is stored."""

    #: What it is called in messages.
    noun = "cell"
    #: Name and version of the MPI library.
    mpi: dict[str, str]
    #: Numbers of nodes and processes; memory of a simulation (MB).
    nodes: int
    processes: int
    memory_mb = 2000
    #: Whether every run gives the same result, so that one suffices; whether an untimed launch verifies it first.
    deterministic = False
    proved = False
    #: Whether it is stored as a folder with `about.json` (which replaces a failed attempt as a whole) instead of as one file.
    in_folder = False
    #: Work that must be done first.
    needs: tuple[Work, ...] = ()

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return everything that can change the result, as plain JSON values."""

    @cached_property
    def digest(self) -> str:
        """Return the digest of the identity."""
        return content_digest(self.identity())

    @property
    @abstractmethod
    def path_text(self) -> str:
        """Return the path of its file in the results folder: readable parts and the first 16 digits of the digest."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Return one line that describes the work in messages."""

    @property
    @abstractmethod
    def point(self) -> tuple[Any, ...]:
        """Return a key; work with the same key is compared and shares a block."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return its description for a block's file."""
