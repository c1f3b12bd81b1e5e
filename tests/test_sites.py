"""Where a program calls its collectives: in its trace."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import pytest
from collstudy.launch import tracefile
from collstudy.launch.actions import read_calls
from collstudy.launch.toolchain import installed, mpis
from test_datatypes import every_library, traced

#: Two functions, one of which calls in two places.
PROGRAM = """
#include <mpi.h>

void often(void) {
    int mine = 1, all;
    for (int i = 0; i < 3; i++)
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

void once(void) {
    int counts[2] = {1, 1}, places[2] = {0, 1}, mine = 1, all[2];
    MPI_Allgatherv(&mine, 1, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    often();
    once();
    MPI_Finalize();
}
"""


def sites_of(about: dict, rows: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return operation and call site of the collectives of rank 0."""
    return [(row["operation"], about["sites"][int(row["site"])]) for row in rows if row["rank"] == "0"]


def called(folder: Path, name: str, *options: str) -> list[tuple[str, str]]:
    """Compile PROGRAM with an MPI library and trace it; return operation and call site of the collectives of rank 0."""
    if name not in mpis():
        pytest.skip(f"no {name}")
    mpi = installed(name)
    (folder / "called.c").write_text(PROGRAM)
    command = [mpi.mpicc, "-O0", *options, "-o", folder / "my program", folder / "called.c"]
    subprocess.run(command, check=True, env=mpi.environment())
    about, rows = traced(folder, name, folder / "my program")
    # The addresses of the other rank differ, its sites do not.
    assert {row["site"] for row in rows if row["rank"] == "1"} == {row["site"] for row in rows if row["rank"] == "0"}
    return sites_of(about, rows)


@every_library
def test_the_calls_of_one_place_have_one_site(tmp_path: Path, name: str) -> None:
    once = [("barrier", "often, called.c:8"), ("allgatherv", "once, called.c:13")]
    assert called(tmp_path, name, "-g") == [("allreduce", "often, called.c:7")] * 3 + once


@pytest.mark.parametrize(
    ("options", "functions"),
    [
        (["-x", "c++"], ["often()", "once()"]),
        (["-no-pie"], ["often", "once"]),
        # Only exported names are left.
        (["-x", "c++", "-rdynamic", "-s"], ["often()", "once()"]),
        (["-s"], ["", ""]),
    ],
    ids=["c++", "no-pie", "exported", "stripped"],
)
def test_without_debug_information_a_site_is_a_place_in_an_object(
    tmp_path: Path, options: list[str], functions: list[str]
) -> None:
    *reductions, (_, barrier), (_, gather) = called(tmp_path, "openmpi", "-g0", *options)
    assert len(set(reductions)) == 1 and len({*reductions, barrier, gather}) == 3
    for site, function in ((reductions[0][1], functions[0]), (barrier, functions[0]), (gather, functions[1])):
        assert re.fullmatch(rf"({re.escape(function)}, )?my program\+0x[0-9a-f]+", site), site
        assert bool(function) == (", " in site)


#: Calls functions of Intel MPI's Fortran bindings, without needing a Fortran compiler.
FORTRAN = """
void mpi_init_f08_(int *), mpi_finalize_f08_(int *), mpi_barrier_f08_(int *, int *);

void often(int *comm, int *code) {
    for (int i = 0; i < 2; i++)
        mpi_barrier_f08_(comm, code);
}

void once(int *comm, int *code) {
    mpi_barrier_f08_(comm, code);
}

int main(void) {
    int code, world = 0x44000000 /* MPI_COMM_WORLD */;
    mpi_init_f08_(&code);
    often(&world, &code);
    once(&world, &code);
    mpi_finalize_f08_(&code);
}
"""


def test_the_sites_of_a_program_in_fortran_are_not_in_the_bindings(tmp_path: Path) -> None:
    mpi = mpis()["impi"]
    (tmp_path / "bound.c").write_text(FORTRAN)
    command = [mpi.mpicc, "-w", "-O0", "-o", tmp_path / "bound", tmp_path / "bound.c", "-lmpifort"]
    subprocess.run(command, check=True, env=mpi.environment())
    about, rows = traced(tmp_path, "impi", tmp_path / "bound")
    sites = [site for _, site in sites_of(about, rows)]
    assert [site.split(",")[0] for site in sites] == ["often", "often", "once"] and sites[0] == sites[1]


def test_a_trace_of_an_earlier_version_has_no_sites(tmp_path: Path) -> None:
    for columns in tracefile.KNOWN_COLUMNS[1:]:
        with gzip.open(tmp_path / "calls.csv.gz", "wt") as stream:
            stream.write(",".join(columns) + "\n" + ",".join("0" for _ in columns) + "\n")
        (row,) = read_calls(tmp_path / "calls.csv.gz")
        assert "site" not in row
