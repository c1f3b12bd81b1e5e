"""What studies need of the computer that they run on: for set-up, and to leave out what cannot run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from collstudy.launch import toolchain
from collstudy.study.config import Study

#: Parts that set-up knows (envs/setup.sh), and what is without them.
COMPILER, SIMULATOR, R, APPLICATIONS = "compiler", "simulator", "r", "applications"


def mpis_of(study: Study) -> set[str]:
    """The MPI libraries whose launchers a study's cells are started with; none for a simulated or imported one."""
    if study.machine.kind not in ("local", "slurm"):
        return set()
    names = {mpi for sweep in study.sweeps for mpi in sweep.mpis} | (
        {study.machine.mpi} if study.applications else set()
    )
    return names & {"openmpi", "mpich", "impi"}


def needs_of(study: Study) -> set[str]:
    """The parts that a study needs until its report is there: MPI libraries by name, and the parts above."""
    needs = {R} | mpis_of(study)
    if study.machine.kind == "simulated" or study.applications:
        needs.add(SIMULATOR)
    if study.sweeps or study.applications:
        needs.add(COMPILER)
    if study.applications:
        needs.add(APPLICATIONS)
    return needs


def by_part(studies: Iterable[Study], report: bool = True) -> dict[str, list[str]]:
    """Part -> names of the studies that need it; without *report*, until they are measured, which takes R for sampled ones only."""
    found: dict[str, list[str]] = {}
    for study in studies:
        for part in needs_of(study) - (set() if report or study.sampling else {R}):
            found.setdefault(part, []).append(study.name)
    return {part: found[part] for part in sorted(found)}


def to_set_up(mpi: str) -> bool:
    """Whether set-up has to look after an MPI library: it is not here, or is the one that set-up installed."""
    found = toolchain.mpis().get(mpi)
    return found is None or found.bin.parent == toolchain.SETUP / mpi


def has_r() -> bool:
    """Whether the analysis can run: R is on PATH, and set-up has installed the analysis into its library, which needs all packages."""
    return shutil.which("Rscript") is not None and (toolchain.SETUP / "R" / "collanalysis" / "DESCRIPTION").exists()


def why_not(study: Study) -> str | None:
    """What is not here and without which a study cannot be measured; None where it can. R is needed by sampled studies' rounds alone."""
    needs = needs_of(study)
    if SIMULATOR in needs and toolchain.simulator_version() is None:
        return "SimGrid (smpicc, smpirun) is not here"
    for mpi in sorted(mpis_of(study)):
        if mpi not in toolchain.mpis():
            return f"{mpi} is not here"
    if COMPILER in needs:
        targets = sorted(mpis_of(study)) + ([toolchain.SIMULATED] if SIMULATOR in needs else [])
        for target in targets:
            suite = toolchain.suite(target)
            if suite is None or not suite.folder.is_dir():
                return f"the benchmark is not built for {target} (that needs a C compiler)"
    if study.sampling and not has_r():
        return "R, which chooses the points of its rounds, is not here"
    return None
