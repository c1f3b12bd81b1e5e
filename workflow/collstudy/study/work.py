"""What can be asked for: a cell, a trace or a replay. All have an identity, a digest of it, and a place in the store."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no blanks: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


class Work(ABC):
    """One thing to be done once, or as often as a policy says, and kept."""

    #: Name and version of the MPI library.
    mpi: dict[str, str]
    #: How many nodes and processes it takes; MB of memory where it is a simulation.
    nodes: int
    processes: int
    memory_mb = 2000
    #: Whether every run gives the same, so that one is enough; whether an untimed launch proves it first.
    deterministic = False
    proved = False
    #: Whether it is kept as a folder with `about.json`, which replaces a failed one as a whole, and not as one file.
    in_folder = False
    #: What has to be done before.
    needs: tuple[Work, ...] = ()

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """All that can change the number, as plain JSON values."""

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
        """What is compared with each other has the same, and meets in one block."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """What a block's file has of it."""
