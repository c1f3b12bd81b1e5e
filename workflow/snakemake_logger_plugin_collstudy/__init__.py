"""The output of `./study run`: one line for each Snakemake job that matters to the user, one message for each error.

Snakemake finds this module by its name (`snakemake --logger collstudy`, with workflow/ on PYTHONPATH). Its complete log is in
.snakemake/log. Rules print the errors of their programs themselves; the lines that Snakemake adds (inputs and outputs,
"WorkflowError", "At least one job did not complete successfully") are not shown.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from collstudy.base.clock import clock
from collstudy.base.errors import UNWRITABLE
from collstudy.base.progress import tell
from collstudy.plan.blocks import read_block
from collstudy.study.work import verb
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

#: Descriptions of the jobs of each rule for the user. Rules that only copy a file are not shown.
DOES = {
    "measure_block": "{measuring} {block}",
    "measure_here": "{measuring} {block}",
    "collect_measurements": "collecting the measurements of {study}",
    "select_points": "selecting the points of {study}, round {round}",
    "analyse_study": "tables, models and figures of {study}",
    "decide_tuning": "selecting algorithms for {study}",
    "replay_sampling": "evaluating sampling on {study}",
    "emit_tuning": "writing and checking tuning files of {study}",
    "keep_tuning": "verifying tuning files of {study}",
    "render_report": "rendering the report",
    "calibrate": "fitting machine {machine}",
}
#: Rules whose jobs print their own progress.
SPEAKING = ("measure_block", "measure_here")
#: Time without output (s) after which the running jobs are listed again.
SILENCE_S = 5.0
#: Rules that fail because cells failed; they list these cells.
VERDICTS = ("measure", "give_verdict")
#: Beginnings of Snakemake's own lines, which are not shown.
ITS_OWN = (
    "Using workflow specific profile", "Using profile", "Assuming unrestricted shared filesystem usage", "host:", "Building DAG",
    "Provided cores", "Rules claiming more threads", "Job stats", "Select jobs to execute", "Execute ", "Shutting down", "Complete log",
    "At least one job did not complete", "Nothing to be done", "SLURM run ID",
    "Updating checkpoint dependencies", "Touching output file", "Trying to restart job",
    "RuleException", "This was a dry-run", "The run involves checkpoint jobs", "Removing output files of failed job", "Using shell",
    "Exception in run_job", "No SLURM account given", "No account was given", "Unable to guess SLURM account", "No job memory information",
    "The following nodes failed",
)  # fmt: skip

#: Beginnings of the messages about a job that Slurm never had.
REFUSED = ("SLURM sbatch failed", "Job submission failed")

#: Set when Snakemake reports that there is nothing to do.
NOTHING_TO_DO = threading.Event()
#: Set when Slurm refuses a job: with the same settings it probably does so again.
JOB_REFUSED = threading.Event()
#: Set when the user ends the run (Ctrl-C): jobs that end because of it have not failed.
INTERRUPTED = threading.Event()


class LogHandler(LogHandlerBase):
    """Log handler that prints to standard error."""

    def __post_init__(self) -> None:
        self.done: tuple[int, int] | None = None
        self.figures: dict[int, Path] = {}
        #: Message of each job that has failed and was not repeated with success.
        self.failed: dict[int, str] = {}
        self.last = ""
        self.ending = False
        #: Descriptions of jobs by number.
        self.does: dict[int, str] = {}
        #: Running jobs that print nothing: description and start time.
        self.silent: dict[int, tuple[str, float]] = {}
        self.reminder: threading.Timer | None = None
        self.alone = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line or nothing for a record."""
        with self.alone:
            text = self.line(record)
            if text:
                self.last = text
                tell(text, sys.stderr)
                self._wait()

    def _wait(self) -> None:
        """Start a timer that lists the running jobs if nothing is printed for a while."""
        if self.reminder:
            self.reminder.cancel()
        if self.silent:
            self.reminder = threading.Timer(SILENCE_S, self._remind)
            self.reminder.daemon = True
            self.reminder.start()

    def _remind(self) -> None:
        with self.alone:
            if self.silent:
                now = time.monotonic()
                running = "; ".join(f"{does} ({clock(now - since)})" for does, since in self.silent.values())
                tell(f"still {running}", sys.stderr)
            self._wait()

    def line(self, record: logging.LogRecord) -> str:
        """Return the text for *record*; "" if it is not shown."""
        event = getattr(record, "event", None)
        if event == LogEvent.PROGRESS:
            self.done = (record.__dict__["done"], record.__dict__["total"])
            return ""
        if event == LogEvent.JOB_INFO:
            said = record.__dict__
            for path in map(Path, said.get("output") or []):
                if path.parts[-2:] == ("figures", "index.csv"):
                    self.figures[said["jobid"]] = path.parent
            measuring = _measuring(said.get("input") or []) if said["rule_name"] in SPEAKING else ""
            does = DOES.get(said["rule_name"], "").format_map({**said["wildcards"], "measuring": measuring})
            self.does[said["jobid"]] = does
            if does and said["rule_name"] not in SPEAKING:
                self.silent[said["jobid"]] = (does, time.monotonic())
            done = f"[{self.done[0]}/{self.done[1]}] " if self.done else ""
            return done + does if does else ""
        if event == LogEvent.JOB_FINISHED:
            self.silent.pop(record.__dict__["job_id"], None)
            self.failed.pop(record.__dict__["job_id"], None)
            figures = self.figures.get(record.__dict__["job_id"])
            return f"figures: {figures}/" if figures else ""
        if event == LogEvent.JOB_ERROR:
            self.silent.pop(record.__dict__["jobid"], None)
            if record.__dict__["rule_name"] in VERDICTS or INTERRUPTED.is_set():
                return ""
            why, logs = said_by_slurm(record), record.__dict__.get("log", [])
            if why.startswith("SLURM-job") and logs and (error := _error_in(Path(logs[-1]))):
                why += f" {error}"
            does = self.does.get(record.__dict__["jobid"]) or record.__dict__["rule_name"]
            text = f"failed: {does}" + (f": {why}" if why else "")
            # A job that died before its rule began has written only to Slurm's log; one that was refused, to none.
            # If Slurm could not start it, there is neither.
            there = [log for log in logs if Path(log).exists()]
            text += f"; its output is in {', '.join(there)}" if there and not why.startswith(REFUSED) else ""
            self.failed[record.__dict__["jobid"]] = text
            return text
        text = record.getMessage() if record.msg else ""
        if text.startswith("Nothing to be done"):
            NOTHING_TO_DO.set()
        if text.startswith("Exiting because a job execution failed"):
            # Lines of other jobs may have been printed since; then repeat the failures.
            again = dict.fromkeys(self.failed.values())
            return "" if set(again) == {self.last} else "\n".join(again)
        if text.startswith("Will exit after finishing currently running jobs (scheduler)"):
            # Snakemake was sent SIGTERM; it says this again whenever a job ends.
            said, self.ending = self.ending, True
            return "" if said else "no further jobs are started; the run ends after the running ones (at once: SIGINT)"
        if (
            event not in (None, LogEvent.ERROR)
            or text.strip() == ""
            or text.startswith(ITS_OWN)
            or INTERRUPTED.is_set()
        ):
            return ""
        if text.startswith("You are running snakemake in a SLURM job context"):
            return (
                "with --profile slurm each block is a job of its own, outside of the Slurm job in which this runs; without this option, "
                "blocks run in it"
            )
        if text.startswith("Error: Directory cannot be locked"):
            return "error: another run has just started in this folder; ./study status --watch shows its progress"
        if text.startswith("MissingRuleException:"):
            # It adds what only an author of rules could do.
            said = " ".join(text.splitlines()[1:]).partition(" (if you use input functions")[0]
            return f"error: {said}" + "; if its study is not in this run: ./study run STUDY -- FILE" * ("/" in said)
        if text.startswith("ProtectedOutputException"):
            files = text.partition("affected files:")[2].splitlines()
            return "error: write-protected: " + ", ".join(filter(None, map(str.strip, files)))
        # The end of a traceback through Snakemake.
        denied = re.search(r"\n\w*Error: \[Errno (\d+)\] (.*)\s*\Z", text)
        if denied and int(denied[1]) in UNWRITABLE:
            return f"error: {denied[2]}"
        if text.startswith("WorkflowError:"):
            lines = [line.strip() for line in text.splitlines()[1:] if not line.strip().startswith(ITS_OWN)]
            return "error: " + " ".join(lines) if lines else ""
        return text if record.levelno >= logging.WARNING else ""

    @property
    def writes_to_stream(self) -> bool:
        """Return True: it replaces Snakemake's own output."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """Return False."""
        return False

    @property
    def has_filter(self) -> bool:
        """Return True: it decides itself what is shown."""
        return True

    @property
    def has_formatter(self) -> bool:
        """Return True: it formats lines itself."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """Return False."""
        return False


class SlurmErrors(logging.Handler):
    """Log handler that prints why Slurm refused or ended a job: with `quiet: [rules]` Snakemake's own output does not have it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line or nothing for a record."""
        if why := said_by_slurm(record):
            tell(f"{record.__dict__['rule_name']} failed: {why}", sys.stderr)


def said_by_slurm(record: logging.LogRecord) -> str:
    """Return why a Slurm job failed, without its command; "" for other records and jobs. Sets JOB_REFUSED."""
    if getattr(record, "event", None) != LogEvent.JOB_ERROR:
        return ""
    text = record.__dict__.get("rule_msg") or ""
    if text.startswith(REFUSED):
        JOB_REFUSED.set()
    text = re.split("    sbatch call:|Failed nodes will|Detailed failure reason|For further error details", text)[0]
    return " ".join(text.split()) if text.startswith(("SLURM", *REFUSED)) else ""


def _error_in(log: Path) -> str:
    """Return the last error message of this project in Slurm's log of a job, so that the user need not search it; "" without one."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return next(iter(re.findall(r"^error: (.+)$", text, re.MULTILINE)[::-1]), "")


def _measuring(inputs: Iterable[object]) -> str:
    """Return `measuring` or `simulating`, depending on the work of the block with these input files."""
    path = next((Path(str(name)) for name in inputs), None)
    return verb((task.work for task in read_block(path).tasks) if path and path.exists() else (), "ing")
