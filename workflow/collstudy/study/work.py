"""Units of work: cells, traces and replays. Each has an identity, its digest, and a place in the store."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Any


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no blanks: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def verb(works: Iterable[Work], ending: str = "e") -> str:
    """`measure`, `simulate` or both, with an ending (`e`, `ed`, `ing`): how the numbers of *works* are obtained."""
    stems = sorted({"simulat" if work.deterministic else "measur" for work in works}) or ["measur"]
    return " and ".join(stem + ending for stem in stems)


class Work(ABC):
    """A unit of work, done once or as often as its policy requires, and stored."""

    #: Name and version of the MPI library.
    mpi: dict[str, str]
    #: Numbers of nodes and processes; MB of memory of a simulation.
    nodes: int
    processes: int
    memory_mb = 2000
    #: Whether every run gives the same result, so that one suffices; whether an untimed launch verifies it first.
    deterministic = False
    proved = False
    #: Whether it is stored as a folder with `about.json`, which replaces a failed one as a whole, instead of one file.
    in_folder = False
    #: Work that has to be done before.
    needs: tuple[Work, ...] = ()

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything that can change the result, as plain JSON values."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the identity, in hexadecimal."""
        return hashlib.sha256(canonical(self.identity())).hexdigest()

    @property
    @abstractmethod
    def path_text(self) -> str:
        """Its file in the results folder: readable parts and the first 16 digits of the digest."""

    @property
    @abstractmethod
    def label(self) -> str:
        """One line for messages."""

    @property
    @abstractmethod
    def point(self) -> tuple[Any, ...]:
        """Key of work to be compared, which shares a block."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Its description in a block's file."""
