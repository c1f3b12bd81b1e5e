"""The script ./study: help, errors, and what it says where a part is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Checkout


def study(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [folder / "study", *arguments], capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip


def test_help() -> None:
    for arguments in ([], ["help"], ["--help"]):
        done = study(ROOT, *arguments)
        assert done.returncode == 0
        assert "./study run" in done.stdout and "test" in done.stdout


def test_unknown_command_and_option() -> None:
    done = study(ROOT, "rnu")
    assert done.returncode == 2 and "unknown command 'rnu'" in done.stderr and "Usage" in done.stderr
    done = study(ROOT, "run", "--dry-run")
    assert done.returncode == 2 and "what follows -- goes to snakemake" in done.stderr


def test_info_prints_one_key_a_line(checkout: Checkout) -> None:
    done = checkout.collstudy("info")
    values = dict(line.split("=", 1) for line in done.stdout.splitlines())
    for key in ("mpicc", "mpirun", "smpicc", "smpirun", "suite_dir", "suite_dir_simulated", "r", "snakemake"):
        assert Path(values[key]).exists(), key
    for key in ("mpicc", "mpirun", "smpicc", "smpirun", "suite", "suite_simulated", "renderer", "r", "snakemake"):
        assert values[f"{key}_version"], key
    assert (Path(values["suite_dir"]) / "collbench_bcast").exists() or values["suite"].startswith("OSU")
    assert (Path(values["suite_dir_simulated"]) / "collbench_bcast").exists()


def test_a_user_without_root_rights_is_told_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    """A PATH with the basic programs only, and an `id` that is not root's."""
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in (
        "bash",
        "env",
        "cat",
        "sha256sum",
        "cut",
        "sed",
        "paste",
        "mkdir",
        "dirname",
        "flock",
        "python3",
        "rm",
        "grep",
    ):
        (bare / name).symlink_to(sys.executable if name == "python3" else shutil.which(name))
    (bare / "id").write_text("#!/bin/bash\necho 1000\n")
    (bare / "id").chmod(0o755)
    folder = tmp_path / "checkout"
    (folder / "envs").mkdir(parents=True)
    shutil.copy2(ROOT / "study", folder / "study")
    shutil.copy2(ROOT / "envs" / "debian.txt", folder / "envs" / "debian.txt")
    done = study(folder, "run", environment={"PATH": str(bare)})
    assert done.returncode == 2
    for text in (
        "missing: ",
        "Rscript",
        "smpicc",
        "module load",
        "Spack",
        "conda",
        "apt-get install",
        "libsimgrid-dev",
    ):
        assert text in done.stderr


LOCAL = """
title: Local
question: q
machine: this-machine
launches: {min: 1, max: 1}
sweeps:
  - {collective: bcast, algorithms: [default], mappings: [core], processes: [2], sizes: {from: 1, to: 8}, iterations: 5, warmup: 1}
"""


def test_omb_is_used_where_it_is_installed(checkout: Checkout, tmp_path: Path) -> None:
    """A stand-in with OMB's name, place and `-v`; the cells say which suite measured them."""
    ours = dict(line.split("=", 1) for line in checkout.collstudy("info").stdout.splitlines())
    if ours["suite"].startswith("OSU"):
        pytest.skip("the real OMB is installed and used already")
    program = tmp_path / "omb" / "mpi" / "collective" / "blocking" / "osu_bcast"
    program.parent.mkdir(parents=True)
    program.write_text(
        '#!/bin/bash\n[ "$1" = -v ] && { echo "# OSU MPI Broadcast Latency Test v7.4"; exit 0; }\n'
        f'exec "{ours["suite_dir"]}/collbench_bcast" "$@"\n'
    )
    program.chmod(0o755)
    environment = {"OMB_HOME": str(tmp_path / "omb")}
    checkout.write("config/studies/local.yaml", LOCAL)
    done = checkout.snakemake(
        "--config", "studies=local", "--", "results/local/measurements.csv", environment=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    header, row, *_ = (checkout.folder / "results" / "local" / "measurements.csv").read_text().splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=True))["suite"] == "OSU Micro-Benchmarks"


def test_a_study_and_a_target_of_ones_own(checkout: Checkout) -> None:
    done = study(checkout.folder, "run", "tiny", "--", "results/tiny/measurements.csv", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "collect_measurements" in done.stdout + done.stderr


def test_activate_finds_its_own_checkout(checkout: Checkout) -> None:
    """Also where two checkouts share what set-up made, from any folder."""
    script = f'source "{checkout.folder}/.study/activate" && command -v snakemake && echo "$PYTHONPATH"'
    done = subprocess.run(["bash", "-c", script], cwd="/", capture_output=True, text=True, check=True)
    snakemake, python_path = done.stdout.splitlines()
    assert snakemake == f"{checkout.folder}/.study/venv/bin/snakemake"
    assert python_path == f"{checkout.folder}/workflow"


#: python3 that makes the environment of Quarto without a network: its quarto prints what $QUARTO_PRINTS says, and ends with
#: status 0 as PyPI's does whatever happens.
PYTHON_WITH_QUARTO = """#!/bin/bash
case "$*" in "-m venv --clear "*/quarto) ;; *) exec {python} "$@" ;; esac
mkdir -p "$4/bin"
printf '#!/bin/bash\\necho "%s"\\n' "$QUARTO_PRINTS" > "$4/bin/quarto"
printf '#!/bin/bash\\n' > "$4/bin/python"
chmod +x "$4/bin/quarto" "$4/bin/python"
"""


def test_quarto_is_used_where_it_works_and_stays_when_the_environment_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    checkout = Checkout(folder)
    made = folder / ".study"
    made.unlink()
    made.mkdir()
    for path in (ROOT / ".study").iterdir():
        if path.name not in ("venv", "stamps", "quarto", "quarto.log", "lock"):
            (made / path.name).symlink_to(path)
    shutil.copytree(ROOT / ".study" / "stamps", made / "stamps")
    (made / "stamps" / "quarto").unlink(missing_ok=True)
    venv = made / "venv"
    (venv / "bin").mkdir(parents=True)
    for path in [ROOT / ".study" / "venv" / name for name in ("lib", "pyvenv.cfg")]:
        (venv / path.name).symlink_to(path)
    for path in (ROOT / ".study" / "venv" / "bin").iterdir():
        if path.name != "quarto":
            (venv / "bin" / path.name).symlink_to(path)
    link = venv / "bin" / "quarto"
    python = checkout.write("bin/python3", PYTHON_WITH_QUARTO.format(python=shutil.which("python3")))
    python.chmod(0o755)
    version = (folder / "study").read_text().split("QUARTO_VERSION=")[1].split()[0]
    # A quarto on PATH would be used as it is.
    others = [place for place in os.environ["PATH"].split(":") if not (Path(place) / "quarto").exists()]
    environment = {"PATH": ":".join([str(python.parent), *others])}

    done = study(folder, "setup", environment={**environment, "QUARTO_PRINTS": "cannot open quarto.js"})
    assert done.returncode == 0 and "cannot be fetched here" in done.stderr, done.stderr
    assert not link.exists()

    (made / "stamps" / "quarto").unlink()
    done = study(folder, "setup", environment={**environment, "QUARTO_PRINTS": version})
    assert done.returncode == 0 and f"Quarto {version} in .study/quarto" in done.stderr, done.stderr
    assert link.exists()

    link.unlink()
    assert study(folder, "setup", environment=environment).returncode == 0
    assert link.exists()
