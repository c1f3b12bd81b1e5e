"""The selection of a cell's algorithm: the MPI library's own switch, the collectives library, or a rules file.

`to_json()` is part of the cell's identity, so it never changes for existing selections; `read()` is its inverse.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Default:
    """No selection: the library decides, or there is only one algorithm. The base of all others.

    *verification* makes separate cells with fresh launches.
    """

    verification: int | None = field(default=None, kw_only=True)

    @property
    def library(self) -> dict[str, str]:
        """Variables of the collectives library; empty if it is not used."""
        return {}

    @property
    def by_library(self) -> bool:
        """Whether the collectives library runs the cell."""
        return bool(self.library)

    def settings(self, mpi: str) -> dict[str, Any] | None:
        """The catalogue's entry with the settings of the library *mpi* for the cell's own collective; None without settings."""
        return None

    def forced(self, mpi: str, collective: str) -> tuple[str, dict[str, Any]] | None:
        """The collective with settings of *mpi*, and the entry; includes the collective inside of a pipelined one."""
        settings = self.settings(mpi)
        return (collective, settings) if settings else None

    def verified(self, number: int) -> Default:
        """The same for a verification."""
        return replace(self, verification=number)

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in identities."""
        return {**self._own(), **({} if self.verification is None else {"verification": self.verification})}

    def _own(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Rate(Default):
    """Of a simulated application: the GFlop/s of a core, which affect these cells only."""

    core_gflops: float

    def _own(self) -> dict[str, Any]:
        return {"core_gflops": self.core_gflops}


@dataclass(frozen=True)
class Switch(Default):
    """The library's own switch: *entry* of the catalogue's word (openmpi, mpich, impi, or smpi for SimGrid's algorithms)."""

    word: str
    entry: dict[str, Any]

    def settings(self, mpi: str) -> dict[str, Any] | None:
        """The entry, if it is for *mpi*."""
        return self.entry if mpi == self.word else None

    def _own(self) -> dict[str, Any]:
        return {self.word: self.entry}


@dataclass(frozen=True)
class Library(Default):
    """The collectives library: *variables* (COLL_<OP>: text) and version; *inside* is {collective, algorithm} of the
    MPI library's non-blocking collective used by a pipelined algorithm.
    """

    variables: dict[str, str]
    version: str
    inside: dict[str, Any] | None = None

    @property
    def library(self) -> dict[str, str]:
        """The variables."""
        return self.variables

    @property
    def by_library(self) -> bool:
        """It does."""
        return True

    def forced(self, mpi: str, collective: str) -> tuple[str, dict[str, Any]] | None:
        """The inner selection, if any."""
        return (self.inside["collective"], self.inside) if self.inside else None

    def _own(self) -> dict[str, Any]:
        own: dict[str, Any] = {"library": self.variables, "library_version": self.version}
        return own | ({"inside": self.inside} if self.inside else {})


@dataclass(frozen=True)
class Rules(Default):
    """A rules file, by its content, and *han*, that of Open MPI's coll/han, if there is one.

    With *variables* and *version* the collectives library uses the file, otherwise the MPI library does.
    """

    text: str
    han: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    version: str | None = None

    @property
    def library(self) -> dict[str, str]:
        """The variables."""
        return self.variables

    def _own(self) -> dict[str, Any]:
        own: dict[str, Any] = {"rules": _content(self.text)}
        own |= {"han_rules": _content(self.han)} if self.han else {}
        own |= {"library_version": self.version} if self.version else {}
        return own | ({"library": self.variables} if self.variables else {})


#: The possible types of a cell's `selection`.
Selection = Default | Rate | Switch | Library | Rules


def _content(text: str) -> dict[str, str]:
    return {"sha256": digest_of(text), "text": text}


def digest_of(text: str) -> str:
    """SHA-256 of a rules file's content, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(found: dict[str, Any]) -> Selection:
    """The selection of an identity."""
    number = found.get("verification")
    own = {key: value for key, value in found.items() if key != "verification"}
    if "rules" in own:
        han = own.get("han_rules", {}).get("text")
        return Rules(own["rules"]["text"], han, own.get("library", {}), own.get("library_version"), verification=number)
    if "library" in own:
        return Library(own["library"], own["library_version"], own.get("inside"), verification=number)
    if "core_gflops" in own:
        return Rate(own["core_gflops"], verification=number)
    if own:
        ((word, entry),) = own.items()
        return Switch(word, entry, verification=number)
    return Default(verification=number)
