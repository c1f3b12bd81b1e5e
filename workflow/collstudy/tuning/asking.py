"""Ask Open MPI's coll/tuned which algorithm it selects for any number of ranks, in one process without messages.

The program (workflow/native/probe/collask.c) makes communicators in which it is every rank. The library reads the rules file,
finds the rules for that size, and decides as in any job; the functions of the algorithms are replaced by ones that report their names.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Sequence

from collstudy.launch.openmpi import FORCED_COMPONENTS, component_of
from collstudy.launch.toolchain import Mpi

ASK_LIMIT_S = 60

#: Of a call: number of ranks, bytes.
Question = tuple[int, int]


def can_ask(mpi: Mpi, collective: str) -> bool:
    """Whether the collective's algorithms are those that the program replaces."""
    return component_of(collective) == "tuned" and (mpi.build / "probe" / "collask").exists()


def without_choices(mpi: Mpi) -> dict[str, str]:
    """The library's environment without algorithms that the caller's variables choose: a check is of the file alone."""
    chosen = ("OMPI_MCA_coll", "MPIR_CVAR_")
    return {key: value for key, value in mpi.environment().items() if not key.startswith(chosen)}


def ask(mpi: Mpi, arguments: Sequence[str], collective: str, questions: Iterable[Question]) -> dict[Question, str]:
    """The algorithm with its parameters, as `<function>[<parameters>]`, of each call under these `--mca` arguments of mpirun.

    Calls without an answer (a library whose functions cannot be replaced does not get beyond the first) are left out.
    """
    settings = dict(zip(arguments[1::3], arguments[2::3], strict=True))
    # No component whose algorithms would run, and nothing that connects to other ranks.
    settings |= {"coll": FORCED_COMPONENTS, "pml": "ob1", "btl": "self", "mpi_param_check": "0"}
    words = [f"{ranks}:{size}" for ranks, size in sorted(set(questions))]
    with tempfile.TemporaryDirectory(prefix="ask-") as folder:
        environment = without_choices(mpi) | {f"OMPI_MCA_{key}": value for key, value in settings.items()}
        environment["TMPDIR"] = folder  # for the session folder, which is not removed
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
