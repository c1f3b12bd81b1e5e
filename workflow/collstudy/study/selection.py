"""How a cell's algorithm is selected: by the MPI library's own switch, the collectives library, or a rules file.

`to_json()` is part of the cell's identity, so its output must not change for existing selections; `read()` is its inverse.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Default:
    """No selection: the library decides, or there is only one algorithm. Base class of all selections.

    *verification* numbers separate cells with fresh launches that verify a result.
    """

    verification: int | None = field(default=None, kw_only=True)

    @property
    def library(self) -> dict[str, str]:
        """Return the environment variables of the collectives library; {} if it is not used."""
        return {}

    @property
    def by_library(self) -> bool:
        """Return whether the collectives library runs the cell's collective."""
        return bool(self.library)

    def settings(self, mpi: str) -> dict[str, Any] | None:
        """Return the catalogue's settings of the library *mpi* for the cell's own collective; None if there are none."""
        return None

    def forced(self, mpi: str, collective: str) -> tuple[str, dict[str, Any]] | None:
        """Return the collective whose algorithm *mpi* forces, and its settings; for a pipelined algorithm, the inner collective."""
        settings = self.settings(mpi)
        return (collective, settings) if settings else None

    def verified(self, number: int) -> Default:
        """Return a copy of the selection for verification *number*."""
        return replace(self, verification=number)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, as used in identities."""
        return {**self._own(), **({} if self.verification is None else {"verification": self.verification})}

    def _own(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Rate(Default):
    """Selection for a simulated application: the compute rate of a core (GFlop/s), which affects these cells only."""

    core_gflops: float

    def _own(self) -> dict[str, Any]:
        return {"core_gflops": self.core_gflops}


@dataclass(frozen=True)
class Switch(Default):
    """The MPI library's own switch: settings *entry* under the catalogue's key *word* (openmpi, mpich, impi; smpi for SimGrid's)."""

    word: str
    entry: dict[str, Any]

    def settings(self, mpi: str) -> dict[str, Any] | None:
        """Return the settings if they are for *mpi*."""
        return self.entry if mpi == self.word else None

    def _own(self) -> dict[str, Any]:
        return {self.word: self.entry}


@dataclass(frozen=True)
class Library(Default):
    """The collectives library: its *variables* (COLL_<OP>: text) and version. *inside* is {collective, algorithm} of the
    MPI library's non-blocking collective that a pipelined algorithm uses.
    """

    variables: dict[str, str]
    version: str
    inside: dict[str, Any] | None = None

    @property
    def library(self) -> dict[str, str]:
        """Return the environment variables."""
        return self.variables

    @property
    def by_library(self) -> bool:
        """Return True."""
        return True

    def forced(self, mpi: str, collective: str) -> tuple[str, dict[str, Any]] | None:
        """Return the inner non-blocking collective and its settings, if any."""
        return (self.inside["collective"], self.inside) if self.inside else None

    def _own(self) -> dict[str, Any]:
        own: dict[str, Any] = {"library": self.variables, "library_version": self.version}
        return own | ({"inside": self.inside} if self.inside else {})


@dataclass(frozen=True)
class Rules(Default):
    """A rules file (*text*: its content) and optionally *han*, the rules file of Open MPI's coll/han.

    With *variables* and *version* the collectives library reads the file, otherwise the MPI library does.
    """

    text: str
    han: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    version: str | None = None

    @property
    def library(self) -> dict[str, str]:
        """Return the environment variables."""
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
    """Return the SHA-256 digest of a rules file's content, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(found: dict[str, Any]) -> Selection:
    """Return the selection that an identity contains."""
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
