"""Which benchmark suite and MPI library results are of, as far as the files of their folder tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from collstudy.sources.importing.drafting.grouping import BEGINNING, DOCUMENTS
from collstudy.sources.importing.drafting.scripts import SCRIPTS
from collstudy.sources.importing.formats.outputs import OUTPUTS
from collstudy.sources.importing.strict import read_text

#: Names, modules, variables and options of MPI libraries.
LIBRARIES = {
    "Open MPI": r"open[ _-]?mpi[\w./-]*|(?<![a-z])ompi(?![a-z])\w*|(?<!\S)--?mca \w+|coll_tuned_\w+",
    "MPICH": r"(?<![a-z])(?:cray-)?mpich(?![a-z])[\w./-]*|\bmpir_cvar_\w+",
    "Intel MPI": r"(?<![a-z])(?:intel[ _-]?mpi|impi)(?![a-z])[\w./-]*|\bi_mpi_\w+|intel\(r\) mpi library",
    # Its site has the OSU Micro-Benchmarks, too.
    "MVAPICH": r"(?<![a-z])mvapich2?(?![a-z\d]|\.cse|/osu)[\w./-]*|\bmv2_\w+",
}
#: Words of benchmark suites.
SUITES = {
    "OSU Micro-Benchmarks": r"osu-micro-benchmarks[\w.-]*|# osu mpi|(?<![a-z])osu_[a-z]\w*",
    "Intel MPI Benchmarks": r"t_avg\[usec\]|(?<![a-z])imb-\w+",
}
#: The version of a suite in a path.
_VERSION = re.compile(r"osu-micro-benchmarks-(\d[\d.]*\d)", re.ASCII)


@dataclass(frozen=True)
class Said:
    """What a file says: the words for each library and suite that it names, and versions of suites in outputs and in paths."""

    file: str
    words: dict[str, str]
    versions: set[str]
    of_paths: set[str]

    @classmethod
    def of(cls, file: str, text: str) -> Said:
        """Return what a text says, which itself is not kept: outputs may be large."""
        found = {name: re.search(of, text, re.IGNORECASE) for name, of in {**LIBRARIES, **SUITES}.items()}
        return cls(
            file, {name: said.group().rstrip(".") for name, said in found.items() if said},
            {version for output in OUTPUTS.values() for version in output.VERSION.findall(text)}, {*_VERSION.findall(text)},
        )  # fmt: skip


def software_of(folder: Path, results: list[Path], suites: set[str]) -> tuple[dict[str, str], list[str]]:
    """Return suite, suite_version (if it is known) and MPI library of *results* ("?" for what no file tells), and questions about them.

    *suites* are those that the formats of the results tell. What results and their names say is preferred to scripts, and these to
    documents, which may speak of other measurements.
    """
    levels = [[Said.of(file, text) for file, text in of] for of in _levels(folder, results)]
    libraries, of_library = _named(levels, LIBRARIES)
    named, of_suite = (suites, []) if suites else _named(levels, SUITES)
    versions, of_version = _versions(levels, len(results))
    software = {"suite": _only(named)} | ({"suite_version": _only(versions)} if len(versions) == 1 else {})
    questions = [f"mpi, mpi_version: the MPI library and its version{_because(of_library)}"]
    if of_version or len(named) != 1 or of_suite:
        questions.append(
            f"suite, suite_version: the benchmark suite and its version{_because([*of_suite, *of_version])}"
        )
    return software | {"mpi": _only(libraries)}, questions


def _only(names: set[str]) -> str:
    """Return the only name, "?" for several or none."""
    return next(iter(names)) if len(names) == 1 else "?"


def _because(evidence: list[str]) -> str:
    return "".join(f"; {text}" for text in evidence) or ", which no file names (`unknown` if nothing tells)"


def _levels(folder: Path, results: list[Path]) -> Iterator[Iterator[tuple[str, str]]]:
    """Yield names and texts of the results (with their names), the scripts and the documents of a folder."""
    yield ((_name(folder, path), f"{read_text(path)}\n{folder.name}/{_name(folder, path)}") for path in results)
    others = sorted(path for path in folder.rglob("*") if path.is_file() and path not in {*results})
    for endings in (SCRIPTS, [ending for ending in DOCUMENTS if ending not in SCRIPTS]):
        yield ((_name(folder, path), _beginning(path)) for path in others if path.suffix.lower() in endings)


def _name(folder: Path, path: Path) -> str:
    return str(path.relative_to(folder))


def _beginning(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(BEGINNING).decode("utf-8", "replace")


def _named(levels: list[list[Said]], names: Iterable[str]) -> tuple[set[str], list[str]]:
    """Return which of the *names* the first level with any of them has, with the first place of each."""
    for level in levels:
        found: dict[str, str] = {}
        for said in level:
            found = {name: f"{said.file} has {word}: {name}" for name, word in said.words.items()} | found
        if about := [found[name] for name in names if name in found]:
            return {name for name in names if name in found}, about
    return set(), []


def _versions(levels: list[list[Said]], count: int) -> tuple[set[str], list[str]]:
    """Return the versions of suites that the results say, or scripts if these say none, and what there is to ask about them."""
    results, scripts, _ = levels
    said = [of.versions for of in results]
    found = set().union(*said)
    if found and all(said) and len(found) == 1:
        return found, []
    if found:
        return found, [
            f"{sum(map(bool, said))} of {count} files say{'s' * (sum(map(bool, said)) == 1)} {', '.join(sorted(found))}"
        ]
    found = set().union(*(of.of_paths for of in scripts))
    return found, [f"scripts say {', '.join(sorted(found))}"] if found else []
