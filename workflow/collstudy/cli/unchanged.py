"""Determine whether any file that `./study run` reads has changed since Snakemake last had nothing to do, without other imports.

Reading the studies and the Snakefile takes seconds; checking the inodes of all files takes a fraction of a second. A record
describes what was checked. It is written only after Snakemake found nothing to do, and only if every file and folder was older
than that run. Size, times and inode of each file are compared; writing a file always changes its ctime. Any other change (an
environment variable, a program on PATH, a reboot) invalidates the record as well, and then Snakemake runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Time (Unix) before this process read any of the files.
STARTED = time.time()
#: The environment at the start of this process, because the Snakefile changes it.
ENVIRONMENT = dict(os.environ)
ROOT = Path(__file__).resolve().parents[3]
#: Folder of the records, in the folder where Snakemake runs; one record per arguments, because these select the studies.
FOLDER = Path(".snakemake") / "collstudy"
#: Parts of the checkout that a run reads, without tests, documentation and caches.
READ = (
    "Snakefile",
    "study",
    "CITATION.cff",
    "config",
    "data",
    "profiles",
    "report",
    "workflow",
    "envs",
    "spack",
    "spack.yaml",
)
#: Products of set-up; for Python packages, names and versions (the first level) suffice.
MADE = ("activate", "build", "rules", "stamps")
#: Snakemake's own record of parameters and interrupted jobs.
OWN = ("metadata", "incomplete")
#: All files must be older than the run by this time (s), because some file systems store times in whole seconds.
SETTLED_S = 2.0
#: Variables that differ between shells and that nothing reads.
VOLATILE = ("_", "SHLVL", "OLDPWD", "COLUMNS", "LINES")
#: System properties that determine which studies can run.
SYSTEM = (
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
)


#: What a dry run (Snakemake's words), a run with a goal and one with arguments of Snakemake say if there is nothing to do.
NOTHING = "Nothing to be done."


def _record(words: list[str]) -> Path:
    return FOLDER / f"unchanged-{hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]}.json"


def _tree(path: str, depth: int | None, seen: set[tuple[int, int]]) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield a path and everything below it up to *depth* levels (None: all); the status is None for a path that does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        yield path, None
        return
    yield path, found
    inode = (found.st_dev, found.st_ino)
    if not stat.S_ISDIR(found.st_mode) or depth == 0 or inode in seen:
        return
    seen.add(inode)
    try:
        names = sorted(name for name in os.listdir(path) if name != "__pycache__")
    except OSError:
        return
    for name in names:
        yield from _tree(os.path.join(path, name), None if depth is None else depth - 1, seen)


def _looked_at(results: str, others: Iterable[str]) -> Iterator[tuple[str, os.stat_result | None]]:
    home = os.path.expanduser("~")
    setup = ROOT / ".study"
    packages = setup.glob("*/lib/python*/site-packages")
    whole = [
        *(ROOT / name for name in READ), *(setup / name for name in MADE), *(Path(".snakemake") / name for name in OWN),
        results, *others, ENVIRONMENT.get("COLLSTUDY_CONFIG") or "config", f"{home}/.config/snakemake", "/etc/xdg/snakemake",
    ]  # fmt: skip
    # Not its logs, nor the cache of parsed documents, to which runs of other studies write.
    kept = [path for path in sorted(setup.glob("*")) if path.is_dir() and path.name != "documents"]
    first = [*kept, *sorted((setup / "R").glob("*")), *sorted(packages), *sorted(setup.glob("*/bin"))]
    shallow = [*first, *ENVIRONMENT.get("PATH", "").split(os.pathsep)]
    seen: set[tuple[int, int]] = set()
    for path in whole:
        yield from _tree(str(path), None, seen)
    for path in shallow:
        yield from _tree(str(path), 1, set())


def _state(words: list[str], results: str, others: Iterable[str]) -> tuple[str, float]:
    """Return a digest of everything that a run with these arguments reads, and its newest time (Unix)."""
    system = [_text(path) for path in SYSTEM] + [
        line for line in _text("/proc/self/status").splitlines() if line.startswith(("CapEff", "Uid", "Gid"))
    ]
    variables = sorted(item for item in ENVIRONMENT.items() if item[0] not in VOLATILE)
    about = (words, os.getcwd(), sys.executable, variables, system, list(os.uname()), sorted(os.sched_getaffinity(0)))
    digest = hashlib.sha256(json.dumps(about).encode())
    newest = 0.0
    for path, found in _looked_at(results, others):
        if found is None:
            line = f"{path}\0"
        elif stat.S_ISDIR(found.st_mode):
            # The folder's content follows; its times also change with temporary files.
            line = f"{path}\0{found.st_mode} {found.st_ino}"
        else:
            line = f"{path}\0{found.st_mode} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {found.st_dev}"
        digest.update(line.encode(errors="surrogateescape") + b"\n")
        # A file removed in the meantime changes the time of its folder.
        newest = max(newest, found.st_ctime if found else 0.0)
    return digest.hexdigest(), newest


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _without_dry_run(words: list[str]) -> list[str]:
    """Return the arguments of the run that a dry run plans; other arguments are returned unchanged."""
    if "--plan" in words and words[-2:] in (["--", "--dry-run"], ["--", "-n"]):
        return [word for word in words[:-1] if word != "--plan"]
    return words


def nothing_to_do(words: list[str]) -> bool:
    """Return whether `collstudy` with these arguments would do nothing; if so, print what the run would print."""
    if words[:1] != ["run"]:
        return False
    asked, words = words, _without_dry_run(words)
    try:
        known = json.loads(_record(words).read_bytes())
        state = _state(words, known["results"], known["others"])[0]
        locked = os.listdir(".snakemake/locks") if os.path.isdir(".snakemake/locks") else []
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if known["state"] != state or locked:
        return False
    whole = asked == words and "--goal" not in words
    for line in known["said"] + [NOTHING] * (not whole):
        print(line, file=sys.stderr)
    if whole:
        say_report(known["results"])
    return True


def say_report(results: str) -> None:
    """Print where the report is, at the end of a run that made all of it."""
    folder = os.path.abspath(os.path.join(results, "report"))
    print(f"\nreport: {folder}/index.html\n        {folder}/report.pdf")


def note(words: list[str], results: Path, others: Iterable[str], said: list[str]) -> None:
    """Record that Snakemake had nothing to do in this process, for these arguments.

    Nothing is recorded if something may have changed while it was being checked.

    Args:
        words: The command line's arguments.
        results: The results folder.
        others: Files and folders outside the checkout that the studies name, including those that do not exist.
        said: Lines that a run prints if there is nothing to do.
    """
    others = sorted(set(others))
    state, newest = _state(words, str(results), others)
    path = _record(words)
    if newest > STARTED - SETTLED_S:
        path.unlink(missing_ok=True)
        return
    from collstudy.base.files import write_atomically

    content = {"state": state, "results": str(results), "others": others, "said": said}
    write_atomically(path, json.dumps(content).encode())
