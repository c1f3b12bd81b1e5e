"""The folder `results/<study>/tuning/`: files for each MPI library, and their usage (README.md)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically
from collstudy.launch import mpich
from collstudy.launch.rulesfile import rules_arguments
from collstudy.study.catalogue import Catalogue
from collstudy.study.machines import Machine
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.tuning import trees
from collstudy.tuning.rules import (
    Placement,
    han_default,
    han_rules,
    in_library,
    intel_variables,
    library_rules,
    openmpi_json,
    openmpi_rules,
    own_version,
    radix_line,
)

BUILT = "built by ./study setup; on another machine, build it there"


def rules_path(folder: Path, mpi: str, placement: Placement) -> Path:
    """The file of a study's own MPI library, which is checked and verified."""
    names = {"mpich": "mpich-{}.json", "impi": "intel-{}.sh"}
    return folder / names.get(mpi, "openmpi-{}.rules").format(placement.name)


def han_path(folder: Path, placement: Placement) -> Path:
    """The file of Open MPI's coll/han for a placement that needs one."""
    return folder / f"openmpi-han-{placement.name}.rules"


def _library_path(folder: Path, placement: Placement) -> Path:
    return folder / f"coll-{placement.name}.rules"


def header_of(study: dict[str, Any], placement: Placement) -> list[str]:
    """Comment lines of files that support them: purpose and data."""
    how = study["how"]
    kind = "simulated" if study["simulated"] else "measured"
    return [
        f"Study {study['name']}: {study['title']}",
        f"For: {study['machine']['label']}, mapping {placement.mapping}, {placement.nodes} nodes; no other placement.",
        f"Decided {datetime.now(UTC).date()} from {kind} latencies: {how['suite']} {how['suite_version']}, "
        f"{how['mpi']} {how['mpi_version']} {how['simulator']} {how['simulator_version']}".rstrip(),
        "Gains are those expected from the deciding data; tables/tuning-verification.csv has those of fresh launches.",
        "Outside of the measured sizes and processes the library decides.",
    ]


def emit(
    study: dict[str, Any], found: list[Placement], catalogue: Catalogue, machine: Machine, folder: Path,
    numbers: dict[str, dict[str, int]] | None = None, write_trees: Callable[[Placement, Path], None] | None = None,
    built: Path | None = None,
) -> None:  # fmt: skip
    """Write every file and README.md to *folder*.

    *numbers* are those of the installed Open MPI's algorithms, *write_trees* writes the installed MPICH's selection trees, and
    *built* is the folder of this project's programs for the study's MPI library.
    """
    numbers = {**NUMBERS, **(numbers or {})}
    mpi = study["how"]["mpi"]
    for placement in found:
        header = header_of(study, placement)
        foreign = [
            *header,
            "For another library than the measured one, whose algorithms of the same name are different implementations.",
        ]
        own = rules_path(folder, mpi, placement)
        counts = {name: sorted(study["collectives"][name]["processes"]) for name in placement.tables}
        default = "ompi_default" if study["simulated"] else "default"
        texts = {}
        if (ours := in_library(catalogue, placement)).tables:
            texts[_library_path(folder, placement)] = library_rules(ours, catalogue, header, machine, counts, default)
        if mpi == "mpich" and write_trees:
            write_trees(placement, own)
        elif mpi == "impi":
            texts[own] = intel_variables(placement, catalogue, header)
        elif mpi != "mpich":
            texts |= {
                own: openmpi_rules(
                    placement, catalogue, header, numbers, own_version(placement, study["how"]["mpi_version"])
                ),
                folder / f"openmpi-5.0.7-{placement.name}.rules": openmpi_rules(
                    placement, catalogue, header, numbers, version=2
                ),
                folder / f"openmpi-6.0-{placement.name}.json": openmpi_json(placement, catalogue, numbers),
                folder / f"intel-{placement.name}.sh": intel_variables(placement, catalogue, foreign),
                folder / f"mpich-{placement.name}.sh": trees.variables(placement, catalogue, foreign),
            }
            if component := han_default(study, placement):
                texts[han_path(folder, placement)] = han_rules(placement, component, header)
        for path, text in texts.items():
            write_atomically(path, text.encode())
    write_atomically(folder / "README.md", readme(study, found, catalogue, built).encode())


def readme(study: dict[str, Any], found: list[Placement], catalogue: Catalogue, built: Path | None) -> str:
    """How to use the files, with the exact commands."""
    library = built / "coll" / "libcollstudy.so" if built else "libcollstudy.so"
    ours = {placement.name: list(in_library(catalogue, placement).tables) for placement in found}
    lines = [
        f"# Tuning files of study {study['name']}",
        "",
        f"{study['title']}. " + ("**Simulated**, not measured. " if study["simulated"] else "")
        + "One file for each placement: the formats cannot tell placements apart (Open MPI issue 8435).",
        "",
        "In this folder, or in a copy of it that is visible on all nodes:",
        "",
        '    export TUNING="$PWD"',
        *([f'    export COLLSTUDY="{library}"  # {BUILT}'] if any(ours.values()) else []),
        "",
        "Then, in the same shell and in any folder, with your program in place of `./program`:",
        "",
    ]  # fmt: skip
    for placement in found:
        rules = [rule for table in placement.tables.values() for rules in table.values() for rule in rules]
        changed = sum(rule.algorithm != "default" for rule in rules)
        lines += [
            f"## Mapping {placement.mapping}, {placement.nodes} nodes",
            "",
            f"{', '.join(placement.tables)}: {len(rules)} rules, {changed} of them other than the default.",
            "",
            *_commands(study, placement),
        ]
        if ours[placement.name]:
            words = _with_library(study["how"]["mpi"], placement)
            lines += [
                f"This project's collectives library, for {', '.join(ours[placement.name])}:",
                "",
                f"    {words}",
                "",
            ]
    return "\n".join(lines)


def _commands(study: dict[str, Any], placement: Placement) -> list[str]:
    mpi, here = study["how"]["mpi"], Path("$TUNING")
    own = rules_path(here, mpi, placement)
    if mpi == "mpich":
        words = [f'-genv {name} "{path}"' for name, path in mpich.environment(own).items()]
        return ["MPICH, in the measured version:", "", f"    mpirun {' '.join(words)} ./program", ""]
    if mpi == "impi":
        return ["Intel MPI, whose choices cannot be checked:", "", f'    . "{own}" && mpirun ./program', ""]

    def command(han: Path | None = None) -> list[str]:
        words = rules_arguments(own, han=han, text=radix_line(placement))
        words = [f'"{word}"' if word.startswith("$") else word for word in words]
        return ["", f"    mpirun {' '.join(words)} ./program", ""]

    component = han_default(study, placement)
    lines = [
        f"Open MPI 4.1{'' if component else ' and 5.0'} (from 5.0.7, `openmpi-5.0.7-*` is equivalent; for 6.0 take the JSON file:"
        " it reads numbers of processes of this format one entry off):"
    ]
    lines += command()
    if component:
        meaning = {"han": "the measured one", "tuned": "coll/tuned's, as in this study"}[component]
        lines += [
            "Open MPI 5.0, where coll/han takes precedence over coll/tuned on several nodes and needs rules to yield; the default"
            f" is {meaning}:"
        ]
        lines += command(han_path(here, placement))
    name = placement.name
    return [
        *lines,
        f'Intel MPI: `. "$TUNING/intel-{name}.sh"`; MPICH: `. "$TUNING/mpich-{name}.sh"`. Neither was checked or verified',
        "here: their algorithms of the same name are different implementations.",
        "",
    ]


def _with_library(mpi: str, placement: Placement) -> str:
    rules = f'"{_library_path(Path("$TUNING"), placement)}"'
    if mpi in ("mpich", "impi"):
        return f'mpirun -genv LD_PRELOAD "$COLLSTUDY" -genv COLL_RULES {rules} ./program'
    return f'mpirun -x LD_PRELOAD="$COLLSTUDY" -x COLL_RULES={rules} ./program'
