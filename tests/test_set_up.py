"""./study setup: missing software and how to get it, rebuilding, moved checkouts, unusual paths, existing tools."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from collstudy.launch import toolchain
from collstudy.launch.toolchain import mpis
from collstudy.sources.needs import to_set_up
from conftest import IMPORTED, ROOT, TINY, Checkout, csv_rows, executable, finish, local_study, must
from made_runs import measured, only_set_up, study


@pytest.mark.long
def test_set_up_is_looked_at_again_only_where_something_changed(checkout: Checkout) -> None:
    def looks() -> bool:
        command = ["bash", "-x", checkout.folder / "study", "run", "tiny", "--", "--dry-run"]
        done = must(finish(command, timeout=600, cwd=checkout.folder))
        return "+ read_needs" in done.stderr

    # The digest is stored in .study/stamps, which other tests share.
    shutil.copytree(ROOT / ".study" / "stamps", checkout.own_setup("stamps") / "stamps")
    checkout.write("config/studies/tiny.yaml", TINY)
    looks()
    assert not looks()
    with open(checkout.folder / "config" / "studies" / "tiny.yaml", "a") as stream:
        stream.write("# changed\n")
    assert looks()
    assert not looks()


def call_set_up(script: str, made: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Run commands that call functions of set-up, with a folder in place of .study/; return their output."""
    of = {**environment, "ROOT": str(ROOT), "SETUP": str(made)}
    # A shell without job control starts background commands, such as these tests, with Ctrl-C ignored.
    command = ["env", "--default-signal=INT", "bash", "-euc", f'. "$ROOT/envs/setup.sh"\n{script}']
    return finish(command, env=of, timeout=30).stdout


def test_a_set_up_folder_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    folder = only_set_up(tmp_path / "checkout")
    (folder / ".study").write_text("a file")
    for command in ("run", "setup", "status"):
        done = study(folder, command)
        assert done.returncode == 2
        assert done.stderr == f"error: {folder}/.study cannot be written; set-up needs this folder\n"


def test_programs_that_set_up_can_build_need_no_compiler(checkout: Checkout) -> None:
    """After a module of another MPI library is loaded."""
    made = checkout.own_setup("build")
    (made / "build").mkdir()
    checkout.write("config/studies/here.yaml", local_study("collective: barrier, algorithms: [default]"))
    done = checkout.collstudy("status", "here")
    assert "the benchmarks are not built for openmpi (./study setup here builds them" in done.stderr, done.stderr


#: Programs that a computer may lack: compilers, R, a simulator, MPI libraries, Slurm; and apt-get, with which root would install them.
LACKING = re.compile(
    r"(gcc|g\+\+|cc|c\+\+|make|R|Rscript|apt-get|apt|quarto|spack|id|lmp|python.*|pip.*)$|smpi|mpi|orte|ompi|opal|srun|s(batch|acct|queue|info)"
)


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user without root on a computer with only the basic programs and Python."""
    programs = tmp_path / "bin"
    programs.mkdir()
    # By name: if /bin is /usr/bin, each program is found twice, and a broken link does not "exist".
    found = {path.name: path for folder in ("/bin", "/usr/bin") for path in Path(folder).iterdir()}
    for name, path in found.items():
        if not LACKING.match(name):
            (programs / name).symlink_to(path)
    (programs / "python3").symlink_to(sys.executable)
    executable(programs / "id", "#!/bin/bash\necho 1000\n")
    return {"PATH": str(programs)}


def configure(checkout: Checkout, studies: str) -> None:
    """Set the studies of a run, and write an imported one with its data."""
    checkout.write("config/config.yaml", f"studies: [{studies}]\nresults: results\n")
    checkout.write("config/studies/imported.yaml", IMPORTED)
    checkout.write("data/somebodys/bcast.csv", "Processes,Size,Latency\n2,1,1.5\n2,2,1.6\n")


def test_a_user_without_root_is_told_what_is_missing_what_for_and_how_to_get_it(
    checkout: Checkout, bare: dict[str, str]
) -> None:
    done = must(study(checkout.folder, "setup", environment=bare))
    for text in (
        "missing: SimGrid (smpicc, smpirun, g++): needed to simulate and to calibrate (tiny)",
        "needed for tables, figures and the report (tiny)", "missing: a C compiler",
        "module", "conda", "Spack", "apt-get install", "libsimgrid-dev",
    ):  # fmt: skip
        assert text in done.stderr, done.stderr
    # Software that is not needed is not requested.
    configure(checkout, "imported")
    done = study(checkout.folder, "setup", environment=bare)
    assert done.returncode == 0 and "SimGrid" not in done.stderr and "compiler" not in done.stderr, done.stderr
    # R is not needed for measurements alone.
    done = study(checkout.folder, "measure", environment=bare)
    assert done.returncode == 0 and "setup: missing" not in done.stderr, done.stderr
    rows = (checkout.folder / "results" / "imported" / "measurements.csv").read_text().splitlines()
    assert len(rows) == 3
    # Nor where analysis and report run in an image.
    executable(Path(bare["PATH"]) / "apptainer", "#!/bin/sh\n[ $1 != --version ] || echo apptainer version 1.4.5\n")
    words = ("run", "--", "--dry-run", "--sdm", "apptainer")
    assert "setup: missing: R" in study(checkout.folder, *words, environment=bare).stderr
    for given in (
        "--sdm apptainer --config image=a.sif",
        "--use-singularity -C image=a.sif",
        "--sdm=apptainer --config=image=a.sif",
    ):
        done = must(study(checkout.folder, "run", "--", "--dry-run", *given.split(), environment=bare))
        assert "setup: missing" not in done.stderr
    checkout.write("config/config.yaml", "image: a.sif\nstudies: [imported]\nresults: results\n")
    assert "setup: missing" not in must(study(checkout.folder, *words, environment=bare)).stderr


BOTH = "title: Both\nquestion: Where?\nmachine: all-measured\nchapter: atlas\ngather: [imported, tiny]\n"


def test_what_cannot_run_is_left_out_and_the_rest_runs(checkout: Checkout, bare: dict[str, str]) -> None:
    """Also of a study that gathers others, as the atlas does."""
    checkout.write("config/studies/both.yaml", BOTH)
    configure(checkout, "both, imported, tiny")
    done = must(study(checkout.folder, "run", environment=bare))
    assert "study tiny is left out: SimGrid (smpicc, smpirun) is not installed" in done.stderr
    assert "R is not installed: no tables, figures and report" in done.stderr
    assert "report:" not in done.stdout and not (checkout.folder / "results" / "report").exists()
    assert (checkout.folder / "results" / "imported" / "measurements.csv").exists()
    assert not (checkout.folder / "results" / "tiny").exists()
    gathered = csv_rows(checkout.folder / "results" / "both" / "measurements.csv")
    assert {row["study"] for row in gathered} == {"imported"}
    # For a study requested by name, this is an error, printed alone.
    done = study(checkout.folder, "run", "tiny", environment=bare)
    assert done.returncode != 0 and "study tiny: SimGrid (smpicc, smpirun) is not installed" in done.stderr


APT_GET = """#!/bin/bash
echo "$*" >> "$CALLS"
case $* in
  *update*)
    [ -e "$CALLS.tried" ] && exit 0
    touch "$CALLS.tried"
    case $LC_ALL in
      de_*) echo "E: Sperre /var/lib/apt/lists/lock konnte nicht erlangt werden. Sie wird von Prozess 1 gehalten." >&2 ;;
      *) echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)" >&2 ;;
    esac
    exit 100 ;;
  *install*) exit 0 ;;
esac
"""


def test_apt_waits_for_its_lock(checkout: Checkout, bare: dict[str, str], tmp_path: Path) -> None:
    """A new machine's own updates hold the lock, also where messages are in another language."""
    made = checkout.folder / ".study"
    made.unlink()
    made.mkdir()
    for name in ("venv", "uv", "build", "openmpi", "stamps"):
        (made / name).symlink_to(ROOT / ".study" / name)
    programs = Path(bare["PATH"])
    (programs / "id").write_text("#!/bin/bash\necho 0\n")
    executable(programs / "apt-get", APT_GET)
    environment = {**bare, "CALLS": str(tmp_path / "calls"), "LC_ALL": "de_DE.UTF-8"}
    must(study(checkout.folder, "setup", environment=environment))
    calls = (tmp_path / "calls").read_text().splitlines()
    assert ["update" in call for call in calls] == [True, True, False]
    assert "DPkg::Lock::Timeout" in calls[-1] and "libsimgrid-dev" in calls[-1] and "munge" not in calls[-1]
    assert "waiting for it" in (made / "system.log").read_text()


def test_a_moved_checkout_works_and_builds_nothing_again(checkout: Checkout) -> None:
    """Its time stamps are new, its path has changed, and the products of set-up have moved along."""
    moved = checkout.folder.parent / "another place" / "checkout"
    moved.parent.mkdir()
    checkout.copied_setup()
    checkout.folder.rename(moved)
    for path in (moved / "workflow" / "native").rglob("*"):
        path.touch()
    done = must(study(moved, "run", "tiny", "--", "results/tiny/measurements.csv"))
    assert "compiling" not in done.stderr and "Python packages" not in done.stderr
    assert (moved / "results" / "tiny" / "measurements.csv").exists()
    # Every program of the environment finds its location by itself.
    shebangs = {
        path: path.read_bytes().split(b"\n", 1)[0]
        for path in (moved / ".study" / "venv" / "bin").iterdir()
        if path.is_file()
    }
    assert not [path for path, line in shebangs.items() if line.startswith(b"#!") and str(ROOT).encode() in line]
    # Programs built with the MPI library that set-up installed find it at the new location.
    script = "from collstudy.launch import toolchain\nfor mpi in toolchain.mpis().values():\n  print(mpi.bin, mpi.shared_library)"
    environment = {**os.environ, "PYTHONPATH": str(moved / "workflow")}
    done = must(finish([sys.executable, "-c", script], env=environment))
    for line in done.stdout.splitlines():
        assert str(ROOT) not in line


@pytest.mark.parametrize("ends", ["exit 2", "kill -INT $$", "kill -TERM $$"])
def test_steps_end_with_a_set_up_that_ends_early(tmp_path: Path, ends: str) -> None:
    """After a misspelt name or Ctrl-C, a step would write to .study/ beside the next set-up; only apt-get is not interrupted."""
    script = f"""
start r "R package" bash -c 'sleep 60 & sleep 60'
start system "Debian packages" sleep 60
echo ${{process_of[r]}} ${{process_of[system]}}
{ends}
attend r
"""
    ended, system = map(int, call_set_up(script, tmp_path).split())
    with contextlib.suppress(ProcessLookupError):
        # Until its processes are gone.
        for _ in range(100):
            os.killpg(ended, 0)
            time.sleep(0.1)
        pytest.fail("the step runs on")
    os.killpg(system, signal.SIGTERM)


def test_what_an_interrupted_set_up_downloaded_is_removed(tmp_path: Path) -> None:
    """It is more than 100 MB, which no later set-up uses."""
    (tmp_path / "uv-cache-123" / "archive-v0").mkdir(parents=True)
    call_set_up("lock_setup", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_the_environment_of_another_python_is_made_again(tmp_path: Path) -> None:
    """After an upgrade of the system, or in a container, the Python that it links to is another version."""
    python = executable(tmp_path / "usr" / "python3.11", "#!/bin/sh\n")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(python)
    (tmp_path / "venv" / "lib" / "python3.11").mkdir(parents=True)
    ask = 'remember venv "$ROOT/envs/study.lock"; ! venv_done venv study || echo done'
    assert call_set_up(ask, tmp_path) == "done\n"
    python.rename(python.with_name("python3.13"))
    (tmp_path / "venv" / "bin" / "python").unlink()
    (tmp_path / "venv" / "bin" / "python").symlink_to(python.with_name("python3.13"))
    assert call_set_up(ask, tmp_path) == ""


@pytest.mark.long
def test_an_interrupted_installation_of_the_r_package_is_repeated(checkout: Checkout) -> None:
    made = checkout.own_setup("R", "stamps")
    (made / "stamps").mkdir()
    for name in ("venv", "uv", "quarto", "r-packages"):
        (made / "stamps" / name).symlink_to(ROOT / ".study" / "stamps" / name)
    (made / "R" / "00LOCK-analysis").mkdir(parents=True)
    must(study(checkout.folder, "setup", "--analysis", environment={"LC_ALL": "C"}))
    assert [path.name for path in (made / "R").iterdir()] == ["collanalysis"]
    # Installed in the locale of a container, it writes the names of units like everywhere.
    said = ["Rscript", "-e", "cat(collanalysis:::format_us(c(2, 2e4)))"]
    environment = {**os.environ, "R_LIBS": str(made / "R"), "LC_ALL": "C.UTF-8"}
    assert must(finish(said, env=environment)).stdout == "2 µs 20 ms"


def test_setup_leaves_what_another_checkout_remembers(tmp_path: Path) -> None:
    """A second checkout starts with hard links to the files of the first one."""
    first, second = tmp_path / "first" / "stamps", tmp_path / "second" / "stamps"
    for folder in (first, second):
        folder.mkdir(parents=True)
    (first / "r").write_text("of the first\n")
    os.link(first / "r", second / "r")
    call_set_up('remember r "$ROOT/LICENSE"', second.parent)
    assert (first / "r").read_text() == "of the first\n" != (second / "r").read_text()


@pytest.mark.long
def test_a_changed_source_is_built_again(checkout: Checkout) -> None:
    """Only content counts: nothing is built at first, then the part with the changed source, and parts linked with it."""
    checkout.copied_setup()
    assert checkout.collstudy("build").stderr == ""
    source = checkout.folder / "workflow" / "native" / "probe" / "collprobe.c"
    source.write_text(source.read_text() + "/* changed */\n")
    os.utime(source, (0, 0))
    said = checkout.collstudy("build").stderr
    assert said.startswith("setup: compiling for simulated: probe (3 files)\n") and "bench" not in said
    assert checkout.collstudy("build").stderr == ""
    # The system's Open MPI is named, because set-up does not install it.
    found = mpis()["openmpi"]
    said = checkout.collstudy("build", "--all").stderr
    assert f"setup: compiling for {found.build.name}: probe (3 files)\n" in said
    assert (f"setup: {found.label} {found.version} in {found.bin} is used\n" in said) == (not to_set_up("openmpi"))


@pytest.mark.long
def test_programs_are_built_for_the_studies_that_need_them(checkout: Checkout) -> None:
    checkout.write("config/studies/factored.yaml", FACTORED)
    built = checkout.copied_setup() / "build" / "simulated"
    for part in ("apps", "fattree", "replay"):
        shutil.rmtree(built / part)
        (built / ".sources" / part).unlink()
    assert checkout.collstudy("build", "tiny").stderr == ""
    # A run without ./study says what to do.
    done = checkout.snakemake("--config", "studies=factored", "--", "results/factored/measurements.csv")
    assert done.returncode != 0
    assert "programs are not built for simulated: apps (./study setup factored builds" in done.stdout + done.stderr
    said = checkout.collstudy("build", "tiny", "factored").stderr
    assert re.fullmatch(r"setup: compiling for simulated: apps \(\d+ files?\)\n(setup: compiled files: .*\n)*", said), (
        said
    )
    measured(checkout, "factored")


@pytest.mark.parametrize("character", "'\"$:\n;`{}#%\\*=,")
def test_a_path_that_cannot_work_is_refused_before_anything_is_done(tmp_path: Path, character: str) -> None:
    folder = only_set_up(tmp_path / f"a {character}b")
    for command in ([], ["run"], ["setup"], ["status"]):
        done = study(folder, *command)
        assert done.returncode == 2 and not (folder / ".study").exists()
        assert "error: the path of this checkout has characters" in done.stderr and done.stderr.count("\n") == 1, (
            done.stderr
        )


def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """As of a folder that was named in Latin-1: names of files could not be written to the results."""
    folder = only_set_up(tmp_path / os.fsdecode(b"caf\xe9"))
    done = subprocess.run([folder / "study", "setup"], capture_output=True, check=False)
    assert done.returncode == 2 and not (folder / ".study").exists()
    assert b"error: the path of this checkout is not in UTF-8" in done.stderr and done.stderr.count(b"\n") == 1


@pytest.mark.long
def test_an_odd_path_works(tmp_path: Path) -> None:
    folder = tmp_path / "a+b c@d~e - 1.2 é ü 計"
    made = Checkout(folder)
    # The programs are built there.
    shutil.rmtree(made.copied_setup() / "build")
    made.write("config/studies/tiny.yaml", TINY)
    # The default is verified with the trace library, the forced algorithm by messages.
    made.write(
        "config/studies/here.yaml",
        local_study("collective: bcast, algorithms: [default, binomial], sizes: {from: 8, to: 8}"),
    )
    made.write("config/config.yaml", "studies: [tiny, here]\nresults: results\n")
    wanted = ["results/tiny/tables/index.csv", "results/here/measurements.csv"]
    must(study(folder, "run", "tiny", "here", "--", *wanted))
    assert (folder / wanted[0]).exists()
    listed = (folder / "results" / "here" / "cells.csv").read_text().splitlines()
    assert [line.split(",")[7] for line in listed] == ["status", "measured", "measured"]


def test_the_containers_copy_what_is_committed(tmp_path: Path) -> None:
    """Run the section %setup of the Apptainer definition like Apptainer: in the checkout, stopping at the first error."""
    section = re.search(r"^%setup\n(.*?)\n\n", (ROOT / "apptainer.def").read_text(), re.MULTILINE | re.DOTALL)
    assert section
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    environment = {**os.environ, "APPTAINER_ROOTFS": str(tmp_path)}
    subprocess.run(["bash", "-e", "-o", "pipefail", "-c", section[1]], check=True, cwd=ROOT, env=environment)
    listed = must(finish(["git", "ls-files"], cwd=ROOT)).stdout.split("\n")
    for name in filter(None, listed):
        # A link must lead to a file of the copy.
        assert (tmp_path / "collstudy" / name).exists(), name


FACTORED = """
title: Factored
question: q
machine: ethernet-lab
sweeps:
  - {collective: svd, mappings: [core], processes: [2], problem_sizes: [16]}
"""


@pytest.mark.long
def test_omb_is_used_where_it_is_installed(checkout: Checkout, tmp_path: Path) -> None:
    """Use a stand-in with OMB's name, location and `-v`; the cells state which suite measured them."""
    ours = dict(line.split("=", 1) for line in checkout.collstudy("info").stdout.splitlines())
    if ours["suite"].startswith("OSU"):
        pytest.skip("the real OMB is installed and used already")
    executable(
        tmp_path / "omb" / "mpi" / "collective" / "blocking" / "osu_bcast",
        '#!/bin/bash\n[ "$1" = -v ] && { echo "# OSU MPI Broadcast Latency Test v7.4"; exit 0; }\n'
        f'exec "{ours["suite_dir"]}/collbench_bcast" "$@"\n',
    )
    sweep = "algorithms: [default], sizes: {from: 1, to: 8}, iterations: 5, warmup: 1"
    text = (
        local_study(f"collective: bcast, {sweep}")
        + f"  - {{collective: scan, mappings: [core], processes: [2], {sweep}}}\n"
    )
    found = measured(checkout, "local", text, {"OMB_HOME": str(tmp_path / "omb")})
    # OMB has no scan.
    assert {(row["collective"], row["suite"]) for row in found} == {
        ("bcast", "OSU Micro-Benchmarks"), ("scan", "collbench")
    }  # fmt: skip


def test_omb_on_path_has_its_point_to_point_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OMB has them in a folder beside that of the collectives."""
    said = '#!/bin/bash\necho "# OSU MPI Test v7.4"\n'
    collective = executable(tmp_path / "mpi" / "collective" / "blocking" / "osu_bcast", said)
    latency = executable(tmp_path / "mpi" / "pt2pt" / "standard" / "osu_latency", said)
    monkeypatch.setenv("PATH", f"{collective.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("OMB_HOME", raising=False)
    monkeypatch.setattr(toolchain, "_views", lambda: [])
    found = toolchain._installed_omb()
    assert found is not None and (found.version, found.program("bcast")) == ("7.4", collective)
    assert found.program("latency") == latency


def test_pip_installs_where_set_up_wants_it(tmp_path: Path) -> None:
    """Users and sites let it install for the user alone, only in an environment, or only versions of their list."""
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("uv<0.1\n")
    own = {"PIP_NO_INDEX": "1", "PIP_USER": "1", "PIP_REQUIRE_VIRTUALENV": "1", "PIP_CONSTRAINT": str(constraints)}
    environment = {**os.environ, **own, "PYTHON": os.path.realpath(sys.executable)}
    said = call_set_up("setup_uv 2>&1 || true", tmp_path, environment)
    assert "No matching distribution found for uv" in said


def test_a_set_up_that_is_linked_into_another_checkout_stays_as_it_is(tmp_path: Path) -> None:
    """A second worktree starts with hard links (CONTRIBUTING.md)."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (first / "activate").write_text("of another version\n")
    os.link(first / "activate", second / "activate")
    call_set_up("write_activate", second)
    assert (first / "activate").read_text() == "of another version\n"
    assert "_checkout" in (second / "activate").read_text()


def test_r_packages_of_the_user_are_those_of_jobs(checkout: Checkout, tmp_path: Path) -> None:
    """A module, or Spack, names them in R_LIBS, and set-up takes R for complete."""
    configure(checkout, "imported")
    checkout.program("Rscript", '#!/bin/sh\necho "$R_LIBS" > "$SAID"\nexit 1\n')
    environment = {**checkout.first_on_path, "R_LIBS": "/of/the/user", "SAID": str(tmp_path / "said")}
    checkout.snakemake("--", "results/imported/sentences.csv", environment=environment)
    assert (tmp_path / "said").read_text() == f"{checkout.folder}/.study/R:/of/the/user\n"


def test_the_settings_of_pip_apply_to_all_packages(tmp_path: Path) -> None:
    """A site's index, certificates and proxy are in pip's files, which uv does not read."""
    file = tmp_path / ".config" / "pip" / "pip.conf"
    file.parent.mkdir(parents=True)
    file.write_text("[global]\nindex-url = https://files/simple\ncert = /site.pem\nproxy = http://files:1\n")
    executable(tmp_path / "uv" / "bin" / "uv", "#!/bin/bash\nenv\n")
    environment = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper() and "PIP" not in key}
    environment |= {"HOME": str(tmp_path), "PYTHON": sys.executable}
    for name in ("SSL_CERT_FILE", "UV_DEFAULT_INDEX", "XDG_CONFIG_HOME"):
        environment.pop(name, None)

    def settings(**own: str) -> set[str]:
        return set(call_set_up("use_uv pip install", tmp_path, environment | own).splitlines())

    files = {f"{scheme}_proxy=http://files:1" for scheme in ("http", "https")}
    assert {"UV_DEFAULT_INDEX=https://files/simple", "SSL_CERT_FILE=/site.pem", *files} <= settings()
    # Variables precede files.
    own = {"UV_DEFAULT_INDEX": "https://own", "SSL_CERT_FILE": "/own.pem", "https_proxy": "http://own:1"}
    assert {f"{name}={value}" for name, value in own.items()} <= settings(**own)
    assert "UV_DEFAULT_INDEX=https://pip" in settings(PIP_INDEX_URL="https://pip")


#: A uv that creates the environment of Quarto without a network: its quarto prints the text in $QUARTO_PRINTS and always ends with
#: status 0, like PyPI's.
UV_WITH_QUARTO = """#!/bin/bash
made=${*: -1}
[ "$1" = venv ] || exit 0
mkdir -p "$made/bin"
printf '#!/bin/bash\\necho "%s"\\n' "$QUARTO_PRINTS" > "$made/bin/quarto"
chmod +x "$made/bin/quarto"
"""


@pytest.mark.long
def test_quarto_is_used_where_it_works_and_stays_when_the_environment_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    checkout = Checkout(folder)
    made = checkout.own_setup("venv", "uv", "stamps", "quarto", "quarto.log", "lock", "activate")
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
    checkout.write(".study/uv/bin/uv", UV_WITH_QUARTO).chmod(0o755)
    version = (folder / "envs" / "setup.sh").read_text().split("QUARTO_VERSION=")[1].split()[0]
    # A quarto on PATH would be used directly.
    others = [place for place in os.environ["PATH"].split(":") if not (Path(place) / "quarto").exists()]
    environment = {"PATH": ":".join(others)}

    done = study(folder, "setup", environment={**environment, "QUARTO_PRINTS": "cannot open quarto.js"})
    assert done.returncode == 0 and "cannot be downloaded here" in done.stderr, done.stderr
    assert not link.exists()

    (made / "stamps" / "quarto").unlink()
    done = study(folder, "setup", environment={**environment, "QUARTO_PRINTS": version})
    assert done.returncode == 0 and f"Quarto {version} in .study/quarto" in done.stderr, done.stderr
    assert link.exists()

    link.unlink()
    assert study(folder, "setup", environment=environment).returncode == 0
    assert link.exists()
