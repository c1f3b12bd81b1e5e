"""`./study` without a command: where a checkout is, and what to do next."""

from __future__ import annotations

from pathlib import Path

from collstudy.launch.runner import clock
from collstudy.project import needs
from collstudy.project.project import Project, StudyState
from collstudy.project.status import stale_lock

REPORT = Path("report") / "index.html"


def describe(project: Project, folder: Path) -> list[str]:
    """Lines for a person: what runs, failed, is lacking or changed, and the command that goes on. Raises StudyError."""
    studies, lines = project.available(project.default_studies, explicit=False)
    if stale_lock(folder):
        return [*lines, "A run is going on in this folder.", "", _command("status --watch", "how far it is")]
    states = [project.state(study) for study in studies]
    lacking = [state for state in states if state.tasks]
    if lacking:
        lines += [_what_lacks(state) for state in lacking]
        seconds = sum(task.seconds() for state in lacking for task in state.tasks)
        about = f"measures what is lacking (about {clock(seconds)} of launches), analyses and reports"
        return [
            *lines,
            "",
            _command("run", about),
            _command("run -- --dry-run", "what that would do, in how many blocks"),
        ]
    outdated = [state.study.name for state in states if not _reported(project, state)]
    if not needs.has_r():
        return [
            *lines,
            "Everything is measured. R is not here, so there is no report.",
            "",
            _command("setup", "what is missing, and how to get it"),
        ]
    if outdated:
        return [
            *lines,
            f"Everything is measured; the report is not made from it yet: {', '.join(outdated)}.",
            "",
            _command("run", "analyses and reports"),
        ]
    names = ", ".join(state.study.name for state in states)
    return [
        *lines, f"Everything is measured and reported: {names}.", f"  {project.results / REPORT}", "",
        _command("run NAME", "a study of your own: cp config/studies/this-machine.yaml config/studies/NAME.yaml, and edit it"),
        _command("advise --help", "which algorithm to use for a call"),
        _command("publish", "report and data package for a web server and a DOI"),
    ]  # fmt: skip


def _command(words: str, what: str) -> str:
    return f"  ./study {words:18} {what}"


def _what_lacks(state: StudyState) -> str:
    """What a study lacks: all, some that are new or changed, or cells that failed."""
    total, lacking, name = len(state.cells), len(state.tasks), state.study.name
    if state.failed == lacking:
        return f"{name}: {state.failed} of {total} cells failed (why: results/{name}/cells.csv, logs/measure/); a run tries them again"
    failed = f", of which {state.failed} failed" if state.failed else ""
    if lacking == total:
        return f"{name}: nothing is measured yet ({total} cells)"
    return f"{name}: {lacking} of {total} cells are not measured{failed} (new, changed or interrupted)"


def _reported(project: Project, state: StudyState) -> bool:
    """Whether the report is newer than what a study's cells and settings say."""
    try:
        made = (project.results / REPORT).stat().st_mtime
        parts = [project.folder(state.study.name) / name for name in ("study.json", "measurements.csv")]
        return all(part.stat().st_mtime <= made for part in parts) and (
            not state.newest or state.newest.stat().st_mtime <= made
        )
    except OSError:
        return False
