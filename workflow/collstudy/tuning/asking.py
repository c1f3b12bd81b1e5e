"""Ask Open MPI's coll/tuned which algorithm it selects for any number of ranks, in one process and without messages.

The program (workflow/native/probe/collask.c) creates communicators in which it plays every rank. The library reads the rules
file, finds the rules for the communicator's size, and decides as in any job; the algorithms' functions are replaced by
functions that report their names.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence

from collstudy.launch import mca
from collstudy.launch.openmpi import component_of
from collstudy.launch.slurm_env import clean_environment
from collstudy.launch.toolchain import Mpi

ASK_LIMIT_S = 60

#: A call: number of ranks, message size (bytes).
Question = tuple[int, int]


def can_ask(mpi: Mpi, collective: str) -> bool:
    """Return whether the program can replace the algorithms of the collective."""
    return component_of(collective) == "tuned" and (mpi.build / "probe" / "collask").exists()


def without_choices(mpi: Mpi) -> dict[str, str]:
    """Return the library's environment without variables that select algorithms, so that only the file is checked."""
    chosen = ("OMPI_MCA_coll", "MPIR_CVAR_", "I_MPI_ADJUST_")
    return {
        key: value
        for key, value in mpi.environment(clean_environment(os.environ)).items()
        if not key.startswith(chosen)
    }


def ask(mpi: Mpi, arguments: Sequence[str], collective: str, questions: Iterable[Question]) -> dict[Question, str]:
    """Return the algorithm of each call under mpirun's `--mca` arguments, as `<function>[<parameters>]`.

    Calls without an answer are omitted; a library whose functions cannot be replaced stops at the first call.
    """
    settings = mca.parameters_of(arguments)
    # Exclude components whose algorithms would really run, and everything that connects to other ranks.
    settings |= {"coll": mca.COMPONENTS, "pml": "ob1", "btl": "self", "mpi_param_check": "0"}
    words = [f"{ranks}:{size}" for ranks, size in sorted(set(questions))]
    with tempfile.TemporaryDirectory(prefix="ask-") as folder:
        environment = without_choices(mpi) | {f"OMPI_MCA_{key}": value for key, value in settings.items()}
        environment["TMPDIR"] = folder  # for the session folder, which Open MPI does not remove
        command = [str(mpi.build / "probe" / "collask"), collective, *words]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ASK_LIMIT_S, env=environment,
                cwd=folder, check=False,
            )  # fmt: skip
            said = done.stdout
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
    answers = {}
    for line in said.decode().splitlines():
        ranks, size, text = line.split(" ", 2)
        if text:
            answers[int(ranks), int(size)] = text
    return answers
