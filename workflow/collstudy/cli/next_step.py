"""`./study` without a command: print the state of the checkout and the next step."""

from __future__ import annotations

from pathlib import Path

from collstudy.base.clock import clock
from collstudy.project.status import stale_lock
from collstudy.project.studies import Project, StudyState
from collstudy.sources import needs
from collstudy.study.work import counted, verb

REPORT = Path("report") / "index.html"


def describe(project: Project, folder: Path) -> list[str]:
    """Return lines for users: what is running, failed, missing or changed, and the command to continue with. Raises StudyError."""
    sources, left_out = project.available(project.default_studies, explicit=False)
    left_out += project.also_run()
    if stale_lock(folder):
        return [*left_out, "A run is in progress in this folder.", "", _command("status --watch", "its progress")]
    states = [project.state(source) for source in sources]
    lacking = [state for state in states if state.lacking]
    if lacking:
        tasks = [task for state in lacking for task in state.lacking]
        seconds, missing = sum(task.seconds() for task in tasks), verb(task.work for task in tasks)
        return [
            *left_out, *map(_describe_missing, lacking), "",
            _command("run", f"{missing} what is missing (about {clock(seconds)}), analyse, make the report"),
            _command("run -- --dry-run", "show what would be done, in how many blocks"),
        ]  # fmt: skip
    unverified = {source.study.name: rows for source in sources if (rows := source.unverified())}
    if unverified:
        return [
            *left_out, *(_describe_unverified(project, name, len(rows)) for name, rows in unverified.items()), "",
            _command("run", "launch these again"),
        ]  # fmt: skip
    names = ", ".join(state.source.study.name for state in states)
    if not needs.has_r():
        what = f"All studies are complete: {names}. Without R there is no report."
        return [*left_out, what, "", _command("setup", "show what is missing and how to install it")]
    outdated = [state.source.study.name for state in states if not _report_is_current(project, state)]
    if outdated:
        what = f"All studies are complete; the report is out of date for: {', '.join(outdated)}."
        return [*left_out, what, "", _command("run", "analyse and make the report")]
    return [
        *left_out, f"All studies are complete and in the report: {names}.", f"  {project.results / REPORT}", "",
        _command("new NAME", "draft a study of your own; ./study run NAME runs it"),
        _command("advise --help", "recommend an algorithm for a call"),
        _command("publish", "report and data package for a web server and a DOI"),
    ]  # fmt: skip


def _command(words: str, what: str) -> str:
    return f"  ./study {words:18} {what}"


def _describe_missing(state: StudyState) -> str:
    """Describe the missing cells of a study: all, new or changed ones, or failed ones."""
    total, lacking, name = counted(state.work), len(state.lacking), state.source.study.name
    done = verb((task.work for task in state.lacking), "ed")
    if state.failed and state.failed == lacking:
        why = f"why: {state.source.folder}/cells.csv, logs/measure/"
        return f"{name}: {state.failed} of {total} failed ({why}); the next run retries them"
    failed = f", of which {state.failed} failed" if state.failed else ""
    if lacking == len(state.work) and not (state.source.folder / "measurements.csv").exists():
        return f"{name}: nothing is {done} yet ({total})"
    return f"{name}: {lacking} of {total} are not {done}{failed} (new, changed or interrupted)"


def _describe_unverified(project: Project, name: str, count: int) -> str:
    """Describe the cells that should have verified the tuning files of a study, but failed or are damaged."""
    what = f"{count} cell{'s' * (count != 1)} that verif{'y' if count != 1 else 'ies'} the tuning files failed or "
    what += "are damaged" if count != 1 else "is damaged"
    why = f"{project.folder(name)}/tables/tuning-failed.csv, ./study verify {name}"
    return f"{name}: {what} (why: {why}); the next run retries them"


def _report_is_current(project: Project, state: StudyState) -> bool:
    """Return whether the report is newer than the study's data."""
    folder = project.folder(state.source.study.name)
    parts = [folder / "study.json", folder / "measurements.csv", *([state.newest] if state.newest else [])]
    try:
        made = (project.results / REPORT).stat().st_mtime
        return all(part.stat().st_mtime <= made for part in parts)
    except OSError:
        return False
