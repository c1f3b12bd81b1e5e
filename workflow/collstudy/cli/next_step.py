"""`./study` without a command: where a checkout is, and what to do next."""

from __future__ import annotations

from pathlib import Path

from collstudy.base.clock import clock
from collstudy.project import needs
from collstudy.project.status import stale_lock
from collstudy.project.studies import Project, StudyState

REPORT = Path("report") / "index.html"


def describe(project: Project, folder: Path) -> list[str]:
    """Lines for a person: what runs, failed, is lacking or changed, and the command that goes on. Raises StudyError."""
    sources, left_out = project.available(project.default_studies, explicit=False)
    if stale_lock(folder):
        return [*left_out, "A run is going on in this folder.", "", _command("status --watch", "how far it is")]
    states = [project.state(source) for source in sources]
    lacking = [state for state in states if state.lacking]
    if lacking:
        seconds = sum(task.seconds() for state in lacking for task in state.lacking)
        return [
            *left_out, *map(_what_lacks, lacking), "",
            _command("run", f"measures what is lacking (about {clock(seconds)} of launches), analyses and reports"),
            _command("run -- --dry-run", "what that would do, in how many blocks"),
        ]  # fmt: skip
    names = ", ".join(state.source.study.name for state in states)
    if not needs.has_r():
        what = f"Everything is measured: {names}. R is not here, so there is no report."
        return [*left_out, what, "", _command("setup", "what is missing, and how to get it")]
    outdated = [state.source.study.name for state in states if not _reported(project, state)]
    if outdated:
        what = f"Everything is measured; the report is not made from it yet: {', '.join(outdated)}."
        return [*left_out, what, "", _command("run", "analyses and reports")]
    return [
        *left_out, f"Everything is measured and reported: {names}.", f"  {project.results / REPORT}", "",
        _command("run NAME", "a study of your own: cp config/studies/this-machine.yaml config/studies/NAME.yaml, and edit it"),
        _command("advise --help", "which algorithm to use for a call"),
        _command("publish", "report and data package for a web server and a DOI"),
    ]  # fmt: skip


def _command(words: str, what: str) -> str:
    return f"  ./study {words:18} {what}"


def _what_lacks(state: StudyState) -> str:
    """What a study lacks: all, some that are new or changed, or cells that failed."""
    total, lacking, name = len(state.work), len(state.lacking), state.source.study.name
    if state.failed and state.failed == lacking:
        why = f"why: results/{name}/cells.csv, logs/measure/"
        return f"{name}: {state.failed} of {total} cells failed ({why}); a run tries them again"
    failed = f", of which {state.failed} failed" if state.failed else ""
    if lacking == total:
        return f"{name}: nothing is measured yet ({total} cells)"
    return f"{name}: {lacking} of {total} cells are not measured{failed} (new, changed or interrupted)"


def _reported(project: Project, state: StudyState) -> bool:
    """Whether the report is newer than what is known of a study."""
    folder = project.folder(state.source.study.name)
    parts = [folder / "study.json", folder / "measurements.csv", *([state.newest] if state.newest else [])]
    try:
        made = (project.results / REPORT).stat().st_mtime
        return all(part.stat().st_mtime <= made for part in parts)
    except OSError:
        return False
