"""coll/tuned's numbers: every algorithm of 4.1 and 5.0 has an entry in the catalogue, and the installed library agrees."""

from __future__ import annotations

import pytest
from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.launch.openmpi import algorithm_numbers
from collstudy.launch.toolchain import mpis
from collstudy.study.config import Configuration
from collstudy.study.openmpi_numbers import NUMBERS, VERSIONS, algorithm_of, numbers_of

CATALOGUE = Configuration(ROOT / "config").catalogue


#: Collectives with one more algorithm in 6.0, which no study can name yet.
NEW_IN_6 = ("allgather", "allreduce", "reduce")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_number_has_an_entry_of_its_own(version: str) -> None:
    for collective, names in numbers_of(version).items():
        here = range(len(names) + 1 - (version == "6.0" and collective in NEW_IN_6))
        found = [algorithm_of(CATALOGUE, collective, number, version) for number in here]
        assert found[0] == "default"
        assert len(set(found)) == len(here), (collective, found)


def test_numbers_that_a_version_lacks() -> None:
    assert algorithm_of(CATALOGUE, "allgather", 7, "5.0.7") == "sparbit"
    with pytest.raises(StudyError, match=r"Open MPI 4\.1\.6 has no allgather algorithm 7; it has 0 to 6"):
        algorithm_of(CATALOGUE, "allgather", 7, "4.1.6")
    with pytest.raises(StudyError, match=r"algorithm numbers of Open MPI 3\.1\.0 are unknown"):
        algorithm_of(CATALOGUE, "bcast", 1, "3.1.0")


def test_the_installed_library_numbers_them_alike() -> None:
    installed = mpis().get("openmpi")
    if installed is None or installed.version.rsplit(".", 1)[0] not in VERSIONS:
        pytest.skip("no Open MPI 4.1 or 5.0 here")
    wanted = numbers_of(installed.version)
    assert set(wanted) == set(NUMBERS)
    for collective, names in wanted.items():
        found = algorithm_numbers(installed.ompi_info, collective)
        assert {name: number for name, number in found.items() if number} == names, collective
