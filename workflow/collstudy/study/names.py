"""Fixed names of the configuration: collectives, levels, and MPI libraries by kind of machine; the rule for names."""

from __future__ import annotations

import re

from collstudy.base.errors import StudyError

#: Programs that start the ranks of MPI programs; Debian adds the library to names that both of its MPI libraries have.
LAUNCHERS = (
    "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun",
    "mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich",
)  # fmt: skip

#: Benchmarks that sweep message sizes; UNSIZED have no message size.
SIZED = (
    "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "allgatherv", "alltoall", "alltoallv", "reduce_scatter",
    "reduce_scatter_block", "scan", "exscan", "ibcast", "iallreduce", "ireduce_scatter", "latency", "bw", "multi_lat", "pairs",
)  # fmt: skip
UNSIZED = ("barrier",)
#: Benchmarks that the OSU Micro-Benchmarks lack (7.4); this project's suite has them.
NOT_IN_OMB = ("reduce_scatter_block", "scan", "exscan", "pairs")
NON_BLOCKING = ("ibcast", "iallreduce", "ireduce_scatter")
#: Benchmarks between two ranks; `pairs` measures every pair of ranks in turn.
POINT_TO_POINT = ("latency", "bw", "multi_lat", "pairs")
#: Collectives with a root: when a call releases each rank depends on the algorithm.
ROOTED = ("bcast", "reduce", "gather", "scatter")
#: Collectives whose algorithms may depend on whether the operation commutes.
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block")
#: Programs of `workflow/native/apps/` whose time to solution is measured for each number of processes and problem size.
APPLICATIONS = ("svd",)

#: The suite of a sweep with `barrier: window`: collbench's calls in windows of synchronised clocks.
WINDOWS = "collbench-windows"

#: Levels of a machine from the outermost to the innermost.
LEVELS = ("group", "node", "socket", "numa", "ccd", "ccx", "core")
#: MPI libraries by kind of machine, the default first. An imported machine runs none; its data may come from these.
MPIS = {
    "simulated": ("smpi-openmpi", "smpi-mpich", "smpi-impi"),
    "local": ("openmpi", "mpich", "impi"),
    "slurm": ("openmpi", "mpich", "impi"),
    "imported": ("openmpi", "mpich", "impi"),
}
#: Their display names.
LIBRARIES = {"openmpi": "Open MPI", "mpich": "MPICH", "impi": "Intel MPI"}

#: Patterns of the environment variables that select components and algorithms, by MPI library.
SELECTS = {
    "openmpi": r"OMPI_MCA_coll(_(tuned|han)_.*(algorithm|rules).*|_\w+_(priority|enable))?",
    "impi": r"I_MPI_(ADJUST|COLL|TUNING)(_.*)?",
    "mpich": r"MPIR_CVAR_.*_(ALGORITHM|COLL_SELECTION_TUNING_JSON_FILE)",
}

#: Folders and files of `results/` that do not belong to a study; a study cannot have these names.
RESERVED = (
    "applications", "blocks", "calibration", "cells", "complete.txt", "front", "imports", "made.json", "measured.txt", "replays",
    "report", "report-build", "runs", "sources", "spack.lock", "traces",
)  # fmt: skip
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: What Snakemake takes for a loop of its rules if a name ends with it (PeriodicityDetector); the run then does nothing.
LOOP = re.compile(r"(.+?)\1{19}$")


def check_name(name: str, what: str) -> None:
    """Raise StudyError if *name* is unsuitable as a file name; *what* is used in the message ("a study", "a machine")."""
    if not NAME.fullmatch(name):
        shown = repr(name) if len(name) <= 80 else f"{name[:60]!r}... ({len(name)} characters)"
        raise StudyError(
            f"{what} cannot be called {shown}; allowed: letters (A to Z, a to z), digits, '.', '_' and '-', "
            "at most 64, the first a letter or a digit"
        )
    if what == "a study" and LOOP.search(name):
        raise StudyError(f"a study cannot be called {name!r}, which ends with the same characters 20 times")
    if what == "a study" and name in RESERVED:
        raise StudyError(
            f"a study cannot be called {name!r}: results/{name} is reserved for the workflow; reserved names: "
            + ", ".join(RESERVED)
        )
