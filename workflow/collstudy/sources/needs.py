"""Determine what studies require of the computer: for set-up, and to leave out studies that cannot run."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT, SETUP
from collstudy.launch import toolchain
from collstudy.launch.build import built
from collstudy.launch.openmpi import emulates_nodes
from collstudy.launch.srun import starts
from collstudy.sources.source import Source
from collstudy.study.names import LIBRARIES

#: Parts of envs/debian.txt and envs/setup.sh that sources name, in addition to MPI libraries and applications.
COMPILER, SIMULATOR, R = "compiler", "simulator", "r"


def by_part(sources: Iterable[Source], report: bool = True) -> dict[str, list[str]]:
    """Return {part: names of studies that need it}. Without *report*, only to measure: then only sampled studies need R."""
    found: dict[str, list[str]] = {}
    for source in sources:
        for part in source.needs() | ({R} if report else set()):
            found.setdefault(part, []).append(source.study.name)
    return {part: found[part] for part in sorted(found)}


def to_set_up(mpi: str) -> bool:
    """Return whether set-up manages an MPI library: it is missing, or set-up installed it."""
    found = toolchain.mpis().get(mpi)
    return found is None or found.bin.parent == SETUP / mpi


def has_r() -> bool:
    """Return whether the analysis can run: R is on PATH, and set-up has installed the analysis package, which needs all others."""
    return shutil.which("Rscript") is not None and (SETUP / "R" / "collanalysis" / "DESCRIPTION").exists()


def check_analysis() -> None:
    """Raise StudyError if the installed analysis package differs from this checkout's: in an image of another version, or after a
    change without ./study setup. Set-up stores the digest of the package's files (envs/setup.sh).
    """
    library = Path(os.environ.get("R_LIBS", "").split(os.pathsep)[0])
    stamp = library.parent / "stamps" / "r"
    package = ROOT / "workflow" / "analysis"
    files = [p for p in package.rglob("*") if p.is_file() and p.relative_to(package).parts[0] != "tests"]
    present = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(files, key=lambda p: str(p).encode()))).hexdigest()
    if stamp.is_file() and stamp.read_text().strip() != present:
        raise StudyError(
            f"the R package collanalysis in {library} was not installed from workflow/analysis of this checkout: "
            "run ./study setup, or rebuild the image"
        )


def why_not(source: Source) -> str:
    """Return why a study cannot be measured on this computer; "" if it can."""
    machine = source.study.machine
    cores = machine.cores_per_node * machine.nodes
    most = max((p for sweep in source.study.sweeps for p in sweep.processes), default=0)
    if most > cores and not machine.oversubscribe:
        return f"it needs {most} cores; {machine.label} has {cores}"
    if machine.emulated_nodes > 1 and "openmpi" in toolchain.mpis() and not emulates_nodes(toolchain.mpis()["openmpi"]):
        return "emulated nodes need Open MPI 5 and permission to create namespaces (unshare)"
    needs = source.needs()
    libraries = sorted(needs & LIBRARIES.keys())
    installing = f" (./study setup {source.study.name} shows how to install it)"
    if SIMULATOR in needs and toolchain.simulator_version() is None:
        return "SimGrid (smpicc, smpirun) is not installed" + installing
    for mpi in libraries:
        if mpi not in toolchain.mpis():
            return f"{mpi} is not installed" + installing
        if not toolchain.mpis()[mpi].has_mpirun and not starts(machine):
            return toolchain.mpis()[mpi].lacks_mpirun
    if COMPILER in needs:
        building = f" (./study setup {source.study.name} builds them, or says what that needs)"
        for target in libraries + ([toolchain.SIMULATED] if SIMULATOR in needs else []):
            suite = toolchain.suite(target)
            if suite is None or not suite.folder.is_dir():
                return f"the benchmarks are not built for {target}{building}"
            folder = toolchain.built_for(target)
            if lacking := sorted(part for part in source.programs() if built(folder, part) is None):
                return f"programs are not built for {target}: {', '.join(lacking)}{building}"
    if R in needs and not has_r():
        return "R, which selects the points of its rounds, is not installed" + installing
    return ""
