"""`./study setup --spack` with a fake `spack`: the view is used, and the lock is stored and recorded."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Checkout, finish, local_study, must
from made_runs import measured
from test_spack import LOCK

SPACK = """#!/bin/bash
# spack -e FOLDER concretize|install
echo "$*" >> "$CALLS"
case $3 in
  concretize) [ -e "$2/spack.lock" ] || sed "s/debian12/$COLLSTUDY_CLUSTER/" "$LOCK" > "$2/spack.lock" ;;
  install)
    mkdir -p "$2/.study/spack/bin"
    for program in mpirun mpicc ompi_info; do ln -sf "$REAL/$program" "$2/.study/spack/bin/$program"; done ;;
esac
"""


@pytest.fixture
def spacked(tmp_path: Path) -> tuple[Checkout, dict[str, str]]:
    """Return a checkout with its own .study, and the environment with the fake spack."""
    checkout = Checkout(tmp_path / "checkout")  # make needs a path without blanks
    checkout.own_setup("spack", "spack.log", "spack.lock", "lock")
    for name in ("spack", "spack.yaml"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, checkout.folder / name)
    checkout.program("spack", SPACK)
    real = os.environ.get("MPIRUN") or shutil.which("mpirun")
    assert real
    environment = {
        **os.environ, **checkout.first_on_path, "CALLS": str(checkout.folder / "calls"),
        "REAL": str(Path(real).parent), "LOCK": str(checkout.write("lock", json.dumps(LOCK))),
    }  # fmt: skip
    return checkout, environment


def setup(checkout: Checkout, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [checkout.folder / "study", "setup", "--spack"]
    return finish(command, env=environment, timeout=600)


def test_without_a_cluster_or_spack(spacked: tuple[Checkout, dict[str, str]]) -> None:
    checkout, environment = spacked
    environment.pop("COLLSTUDY_CLUSTER", None)
    done = setup(checkout, environment)
    assert done.returncode == 2 and "COLLSTUDY_CLUSTER is not set" in done.stderr and "orfeo" in done.stderr
    (checkout.folder / "bin" / "spack").unlink()
    done = setup(checkout, environment)
    assert done.returncode == 2 and "spack is not on PATH" in done.stderr


@pytest.mark.long
def test_view_and_lock_are_used(spacked: tuple[Checkout, dict[str, str]]) -> None:
    checkout, environment = spacked
    environment["COLLSTUDY_CLUSTER"] = "orfeo"
    done = must(setup(checkout, environment))
    calls = Path(environment["CALLS"]).read_text().splitlines()
    assert [line.split()[-1] for line in calls] == ["concretize", "install"]
    lock = checkout.folder / "spack" / "orfeo" / "spack.lock"
    assert "orfeo" in lock.read_text() and "commit spack/orfeo/spack.lock" in done.stderr
    info = checkout.collstudy("info").stdout
    assert f"mpirun={checkout.folder}/.study/spack/bin/mpirun" in info
    # The next set-up starts from the stored lock.
    again = setup(checkout, environment)
    assert again.returncode == 0 and "the lock is new" not in again.stderr
    # Measurements record the lock, even while another environment without MPI is active, such as that of R.
    other = checkout.write("other/spack.lock", "{}").parent
    (other / ".spack-env" / "view").mkdir(parents=True)
    study = local_study("collective: barrier, algorithms: [linear], iterations: 5, warmup: 1")
    measured(checkout, "local", study, {"SPACK_ENV": str(other)})
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    assert (checkout.folder / "results" / "spack.lock").read_bytes() == lock.read_bytes()
    (cell,) = (checkout.folder / "results" / "cells").rglob("*.json")
    assert json.loads(cell.read_text())["launches"][0]["provenance"]["software"]["spack_lock_sha256"] == digest


def test_a_lock_of_something_else_is_not_taken_up(spacked: tuple[Checkout, dict[str, str]]) -> None:
    """Spack accepts any lock whose roots are those of the manifest."""
    checkout, environment = spacked
    locks = {}
    for cluster in ("orfeo", "xeon-edr"):
        environment["COLLSTUDY_CLUSTER"] = cluster
        done = must(setup(checkout, environment))
        locks[cluster] = checkout.folder / "spack" / cluster / "spack.lock"
        assert cluster in locks[cluster].read_text() and "the lock is new" in done.stderr
    locks["orfeo"].write_text(locks["orfeo"].read_text().replace("23-11-1-1", "22-05-9-1"))
    calls = Path(environment["CALLS"]).read_text()
    done = setup(checkout, environment)
    assert done.returncode == 2 and Path(environment["CALLS"]).read_text() == calls
    assert "spack/orfeo/spack.lock: slurm@22-05-9-1 in /usr is not in packages.yaml; remove it" in done.stderr
