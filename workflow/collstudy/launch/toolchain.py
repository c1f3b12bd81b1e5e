"""Find installed software and its versions: MPI libraries, the benchmark suite, the simulator.

Order of preference for MPI: Spack view, `mpicc` on PATH, the wheel that set-up installed in `.study/`. Libraries built for Slurm
have no mpirun.
For the suite: Spack view, `OMB_HOME`, PATH, otherwise the embedded one, collbench.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from collstudy.base.commands import ask
from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT, SETUP
from collstudy.study.cells import Cell, Versions
from collstudy.study.machines import Machine
from collstudy.study.names import APPLICATIONS, LIBRARIES, MPIS, NOT_IN_OMB, SELECTS

SIMULATED = "simulated"
#: The simulated benchmark with the collectives library linked in.
SIMULATED_WITH_LIBRARY = "simulated-library"

#: Arguments with which a compiler prints the macros of mpi.h.
PRINTS_MACROS = ["-E", "-dM", "-include", "mpi.h", "-x", "c", "/dev/null"]

#: The macros in mpi.h with each MPI library's version. Intel MPI and MVAPICH, which is not supported, define those of MPICH, too.
MACROS = {
    "openmpi": ("OMPI_MAJOR_VERSION", "OMPI_MINOR_VERSION", "OMPI_RELEASE_VERSION"),
    "impi": ("I_MPI_VERSION",),
    "mvapich2": ("MVAPICH2_VERSION",),
    "mvapich": ("MVAPICH_VERSION",),
    "mpich": ("MPICH_VERSION",),
}

#: Patterns for the version in the output of each MPI library's `mpirun --version`.
LAUNCHERS_SAY = {
    "openmpi": r"\(Open MPI\) (\S+)",
    "impi": r"Intel\(R\) MPI Library.*Version (\S+)",
    "mpich": r"(?s)HYDRA build details.*?Version:\s+(\S+)",
}


@dataclass(frozen=True)
class Mpi:
    """An installed MPI library: its name (openmpi, mpich, impi), version, and the folder of mpicc and, if it has one, mpirun."""

    name: str
    version: str
    bin: Path

    @property
    def label(self) -> str:
        """Return the display name."""
        return LIBRARIES[self.name]

    @property
    def has_mpirun(self) -> bool:
        """Return whether it has a launcher; libraries built for Slurm have none."""
        return (self.bin / "mpirun").exists()

    @property
    def mpirun(self) -> Path:
        """Return the path of the launcher. Raises StudyError if there is none."""
        if not self.has_mpirun:
            raise StudyError(self.lacks_mpirun)
        return self.bin / "mpirun"

    @property
    def lacks_mpirun(self) -> str:
        """Return the sentence for a library without mpirun."""
        return (
            f"{self.label} {self.version} in {self.bin} has no mpirun; only machines with `slurm: {{launcher: srun}}` do "
            "without one"
        )

    @property
    def mpicc(self) -> Path:
        """Return the path of the compiler wrapper."""
        return self.bin / "mpicc"

    @property
    def ompi_info(self) -> Path:
        """Return the path of ompi_info, which describes an Open MPI installation."""
        return self.bin / "ompi_info"

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return an environment (this process's, or *base*, extended) in which compiler and launcher work."""
        environment = mpi_environment(base)
        libraries = self.bin.parent / "lib"
        # A checkout may be moved: programs contain the library's old path, so variables must provide the new one.
        moved = self.bin.parent == SETUP / self.name
        if self.name == "impi":
            environment["I_MPI_ROOT"] = str(self.bin.parent)
            # Between nodes Intel MPI loads libfabric, which a wheel installs outside its search path.
            if (libraries / "libfabric.so.1").exists():
                moved = True
                environment.setdefault("FI_PROVIDER_PATH", str(libraries))
        if moved:
            known = environment.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = f"{libraries}{os.pathsep}{known}" if known else str(libraries)
        environment["PATH"] = os.pathsep.join([str(self.bin), environment.get("PATH", os.defpath)])
        return environment

    @property
    def shared_library(self) -> Path:
        """Return the library file that a program built with it loads. Raises StudyError if it is not found."""
        program = self.build / "probe" / "collprobe"
        printed = ask(["ldd", program], 30, self.environment()).stdout
        found = re.search(r"^\s*libmpi\w*\.so\S* => (/.*) \(", printed, re.MULTILINE)
        if not found:
            raise StudyError(f"{program} is not linked to libmpi: ./study setup rebuilds it")
        return Path(found.group(1))

    @property
    def build(self) -> Path:
        """Return the folder of this project's programs built with this library."""
        return SETUP / "build" / f"{self.name}-{self.version}"

    @property
    def trace_library(self) -> Path:
        """Return the path of the trace library (workflow/native/trace)."""
        return self.build / "trace" / "libcolltrace.so"


def version_of(command: list[str | Path], pattern: str, programs: Path | None = None) -> str | None:
    """Run *command* and return the first group of *pattern* in its output; None if the command or the match is missing.

    *programs* is the folder of the MPI library's programs, which Intel's launcher needs.
    """
    done = ask(command, 30, _with_programs(programs) if programs else mpi_environment())
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1) if found else None


def _with_programs(folder: Path) -> dict[str, str]:
    """Return the environment for an MPI library's programs in *folder*; Intel's need both variables."""
    environment = mpi_environment()
    path = os.pathsep.join([str(folder), environment.get("PATH", os.defpath)])
    return environment | {"I_MPI_ROOT": str(folder.parent), "PATH": path}


def mpi_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for MPI programs (this process's, or *base*); as root, Open MPI requires confirmation."""
    environment = dict(os.environ if base is None else base)
    if os.geteuid() == 0:
        for prefix in ("OMPI", "PRTE"):
            environment[f"{prefix}_ALLOW_RUN_AS_ROOT"] = environment[f"{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return environment


def preloaded(library: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which a program preloads *library*, in addition to what the variables *given* contain.

    LD_PRELOAD is split at blanks: a path with blanks is given as name and folder. Others are not, because a script that starts the
    program may replace LD_LIBRARY_PATH. (The path of a checkout has no colon: set-up cannot create an environment there.)
    """
    own = {"LD_PRELOAD": str(library)}
    if " " in str(library):
        own = {"LD_PRELOAD": library.name, "LD_LIBRARY_PATH": str(library.parent)}
    return {name: ":".join(filter(None, [value, given.get(name)])) for name, value in own.items()}


def exporting(mpi: str, variables: Mapping[str, str]) -> list[str]:
    """Return the arguments with which the mpirun of an MPI library sets *variables* for all ranks."""
    if mpi == "openmpi":
        return [part for name, value in variables.items() for part in ("-x", f"{name}={value}")]
    return [part for name, value in variables.items() for part in ("-genv", name, value)]


def recording(mpi: Mpi, folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which the trace library records in *folder* what ranks run; they extend those in *given*."""
    return preloaded(mpi.trace_library, given) | {"COLLTRACE_FOLDER": str(folder), "COLLTRACE_RAN": "1"}


def installed(name: str) -> Mpi:
    """Return the MPI library with that name. Raises StudyError if it is not installed."""
    if name in mpis():
        return mpis()[name]
    if name == "openmpi":
        raise StudyError("no Open MPI: its mpicc is not on PATH; ./study setup installs one in .study/openmpi")
    raise StudyError(
        f"no {name}: its mpicc is not the first one on PATH; ./study run STUDY installs one in .study/{name} if STUDY needs it"
    )


def collectives_library(build: Path) -> Path:
    """Return the path of the collectives library in the folder of the programs built with an MPI library."""
    return build / "coll" / "libcollstudy.so"


def with_library(machine: Machine, mpi: Mpi, chosen: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of real ranks with the collectives library preloaded and configured by *chosen*; *base* if empty."""
    if not chosen:
        return dict(base)
    groups = {"COLL_GROUPS": machine.groups} if machine.groups else {}
    return {**base, **chosen, **groups, **preloaded(collectives_library(mpi.build), base)}


def _views() -> list[Path]:
    """Return the existing views of this project's Spack environments."""
    views = [ROOT / ".spack-env" / "view", SETUP / "spack"]
    if os.environ.get("SPACK_ENV"):
        views.insert(0, Path(os.environ["SPACK_ENV"]) / ".spack-env" / "view")
    return [view for view in views if view.is_dir()]


def spack_lock() -> Path | None:
    """Return the lock file of the Spack environment whose MPI is used, or None. The active environment may be that of R."""
    locks = (view.parent.parent / "spack.lock" for view in _views() if (view / "bin" / "mpicc").exists())
    return next((lock for lock in locks if lock.exists()), None)


def identify(folder: Path) -> Mpi | None:
    """Return the MPI library whose mpicc is in *folder*: that of its mpirun, or of mpi.h if there is no mpirun."""
    mpirun = folder / "mpirun"
    if not (folder / "mpicc").exists():
        return None
    found = library_of(mpirun) if mpirun.exists() else declared(folder)
    return Mpi(*found, folder) if found and found[0] in LIBRARIES else None


def declared(folder: Path) -> tuple[str, str] | None:
    """Return name and version of the MPI library in the mpi.h that the mpicc in *folder* finds; None without mpi.h."""
    printed = ask([folder / "mpicc", *PRINTS_MACROS], 30, _with_programs(folder)).stdout
    values = {name: value.strip('"') for name, value in re.findall(r"^#define (\w+) (\S+)$", printed, re.MULTILINE)}
    for name, macros in MACROS.items():
        if set(macros) <= values.keys():
            return name, ".".join(values[macro] for macro in macros)
    return None


def library_of(launcher: Path) -> tuple[str, str] | None:
    """Return name and version of the MPI library that a launcher belongs to; None if it is not a known one."""
    for name, pattern in LAUNCHERS_SAY.items():
        if version := version_of([launcher, "--version"], pattern, launcher.parent):
            return name, version
    return None


@functools.cache
def mpis() -> dict[str, Mpi]:
    """Return all MPI libraries found, by name; for each name the first in the order of preference."""
    folders = [view / "bin" for view in _views()]
    # Debian's openmpi-bin has a compiler wrapper without headers, and its alternatives may give mpicc and mpirun of two libraries.
    on_path = (Path(path).parent for path in map(shutil.which, ("mpicc", "mpirun")) if path)
    own = filter(None, map(identify, dict.fromkeys(on_path)))
    folders += [mpi.bin for mpi in own if mpi.name in (declared(mpi.bin) or ())]
    folders += [SETUP / name / "bin" for name in LIBRARIES]
    found: dict[str, Mpi] = {}
    for mpi in filter(None, map(identify, folders)):
        found.setdefault(mpi.name, mpi)
    return found


@functools.cache
def simulator_version() -> str | None:
    """Return the version of SimGrid, or None if it is not installed."""
    if not (shutil.which("smpirun") and shutil.which("smpicc")):
        return None
    return version_of(["smpirun", "-version"], r"SimGrid version (\S+)")


@dataclass(frozen=True)
class Suite:
    """A benchmark suite: its name and version, and folder and name prefix of its programs."""

    name: str
    version: str
    folder: Path
    prefix: str

    @property
    def embedded(self) -> bool:
        """Return whether this is the project's own benchmark."""
        return self.prefix == "collbench_"

    def program(self, benchmark: str) -> Path:
        """Return the program of a collective or point-to-point test; OMB has subfolders. Raises StudyError if it is missing."""
        name = self.prefix + benchmark
        for sub in ("", "blocking", "persistent", "standard"):
            path = self.folder / sub / name
            if path.exists():
                return path
        found = sorted(self.folder.rglob(name)) if self.folder.is_dir() else []
        if not found:
            raise StudyError(f"{self.name} {self.version} in {self.folder} has no program {name}")
        return found[0]


def source_version(part: str) -> str:
    """Return the version of a C part, to be increased when results change; it is part of the identity of cells measured with it."""
    return (ROOT / "workflow" / "native" / part / "VERSION").read_text(encoding="utf-8").strip()


@functools.cache
def suite(target: str) -> Suite | None:
    """Return the suite for an MPI library (`openmpi`, ...) or for the simulator (`simulated`); None if the library is missing."""
    installed = _installed_omb()
    return installed if installed and target == "openmpi" else embedded(target)


def built_for(target: str) -> Path:
    """Return the folder of this project's programs built for an installed MPI library, or for the simulator (`simulated`)."""
    return SETUP / "build" / target if target.startswith(SIMULATED) else mpis()[target].build


def embedded(target: str) -> Suite | None:
    """Return the embedded suite, which has additional tests, even if another suite is installed."""
    if not target.startswith(SIMULATED) and target not in mpis():
        return None
    return Suite("collbench", source_version("bench"), built_for(target) / "bench", "collbench_")


def suite_of(cell: Cell) -> Suite | None:
    """Return the suite that measures a cell with a real MPI library; None for an application, which is no benchmark."""
    if cell.collective in APPLICATIONS:
        return None
    name = cell.mpi["name"]
    return embedded(name) if cell.by_collbench else suite(name)


def _installed_omb() -> Suite | None:
    """Return the OSU Micro-Benchmarks from a Spack view, OMB_HOME or PATH; None if there are none."""
    candidates = [view / "libexec" / "osu-micro-benchmarks" for view in _views()]
    if os.environ.get("OMB_HOME"):
        candidates.append(Path(os.environ["OMB_HOME"]))
    if on_path := shutil.which("osu_bcast"):
        path = Path(on_path)
        # The point-to-point tests are in a folder beside that of the collectives.
        candidates.append(next((one.parent for one in path.parents if one.name == "collective"), path.parent))
    for folder in candidates:
        found = next(iter(sorted(folder.rglob("osu_bcast"))), None) if folder.is_dir() else None
        if found:
            version = version_of([found, "-v"], r"v(\d[\d.]*)") or "unknown"
            return Suite("OSU Micro-Benchmarks", version, folder, "osu_")
    return None


@functools.cache
def host() -> dict[str, str]:
    """Return the processor model of this computer."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        return {"processor": "unknown"}
    return {"processor": found.group(1).strip() if found else platform.machine()}


def chosen(mpi: str) -> dict[str, str]:
    """Return the environment variables that select algorithms of an MPI library and thereby change its default."""
    return {name: value for name, value in sorted(os.environ.items()) if re.fullmatch(SELECTS[mpi], name)}


def versions() -> Versions:
    """Return the versions for the identity of cells: suites, MPI libraries, and this computer."""
    known_mpi = {name: {"name": name, "version": mpi.version, **chosen(name)} for name, mpi in mpis().items()}
    if simgrid := simulator_version():
        known_mpi |= {name: {"name": name, "version": f"SimGrid {simgrid}"} for name in MPIS["simulated"]}
    known_suite = {}
    for name in known_mpi:
        found = suite(SIMULATED if name.startswith("smpi-") else name)
        if found:
            known_suite[name] = {"name": found.name, "version": found.version}
    own = {name: {"name": "collbench", "version": source_version("bench")} for name in NOT_IN_OMB}
    own |= {name: {"name": name, "version": source_version(f"apps/{name}")} for name in APPLICATIONS}
    return Versions(known_suite, known_mpi, source_version("coll"), host(), own, coll_components)


def ompi_info_says(ompi_info: Path, *arguments: str, environment: dict[str, str]) -> str:
    """Return the output of `ompi_info`. Raises StudyError if it fails or hangs: empty output would mean a library without algorithms."""
    done = ask([ompi_info, *arguments], environment=environment)
    if done.returncode != 0:
        raise StudyError(
            f"{ompi_info} failed or did not answer within 60 s (exit status {done.returncode}); run it by hand"
        )
    return done.stdout


@functools.cache
def coll_components() -> frozenset[str]:
    """Return the components of the framework coll in the installed Open MPI; empty without Open MPI."""
    found = mpis().get("openmpi")
    if found is None:
        return frozenset()
    printed = ompi_info_says(found.ompi_info, environment=found.environment())
    return frozenset(re.findall(r"^\s*MCA coll: (\w+) ", printed, re.MULTILINE))
