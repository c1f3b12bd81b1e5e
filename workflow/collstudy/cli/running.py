"""The command behind `./study run`: check the studies, then run Snakemake in the same process.

Python starts only once, configuration and imported data are read only once, and the Snakefile reuses the checked project.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.base.lazy import lazy
from collstudy.base.paths import SCHEMAS
from collstudy.cli import unchanged
from collstudy.cli.commands import add
from collstudy.cli.studies import check_studies, unlock
from collstudy.project.studies import Project, opened
from collstudy.sources import needs
from collstudy.sources.importing.files import data_folder

#: Snakemake's default limit: number of jobs, per number of seconds. With any limit, its scheduler (9.27) checks the waiting jobs once
#: more after that time for each job that has ended, which takes a tenth of a core after fifty jobs.
DEFAULT_RATE = (100, 1)

#: Of Linux's prctl: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1

#: Seconds after an interrupt in which jobs can end by themselves.
PATIENCE_S = 2


def add_commands(commands: Any) -> None:
    """Add the command of this module to the parser."""
    running = add(commands, "run", run, "check studies, then run snakemake (what ./study run does after setting up)")
    running.add_argument(
        "--studies", default="", help="names, separated by commas (default: those of config/config.yaml)"
    )
    running.add_argument("--goal", default="", help="run this rule instead of the targets in the arguments")
    running.add_argument("--plan", action="store_true", help="nothing is measured: a dry run, or --unlock")
    running.add_argument("words", nargs="*", metavar="ARGUMENT", help="arguments of snakemake, after --")


def run(arguments: argparse.Namespace) -> None:
    """Check what a run of these studies would need, and run it. A configuration error is one message before any output of Snakemake."""
    if "COLLSTUDY_PROGRAM" in os.environ:
        # `kill` with the number of ./study ends its shell only, and this process would go on unseen.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    left_out = check_studies(opened(arguments.results), arguments.studies)
    words = []
    if arguments.plan:
        # Its output may be cut (`| head`): nothing is lost.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    else:
        unlock(arguments)
        # For a dry run, Snakemake itself prints what it would do.
        words += ["--logger", "collstudy"]
    # The options above take lists of words; this one, which the profile sets as well, ends the list.
    words += ["--keep-going"]
    words += arguments.words + (["--", arguments.goal] if arguments.goal else [])
    # Defer imports by Snakemake, which loads all its plugins: that for Slurm imports the first two libraries for a report on finished
    # jobs, and the handling of remote files imports the third.
    for library in ("numpy", "pandas", "requests"):
        lazy(library)
    import snakemake_logger_plugin_collstudy as logger
    from snakemake.cli import args_to_api, parse_args
    from snakemake.exceptions import print_exception

    parser, options = _parsed(parse_args, words)
    try:
        # Append to the settings in the arguments, because a second option --config would replace the first.
        if arguments.studies:
            # As a list: Snakemake would read a name such as 2026 or 1e3 as a number.
            options.config = [*(options.config or []), f"studies=[{arguments.studies}]"]
        rate = options.max_jobs_per_timespan
        if (rate.max_jobs, rate.timespan) == DEFAULT_RATE:
            options.max_jobs_per_timespan = None
        signal.signal(signal.SIGINT, _interrupt)
        succeeded = args_to_api(options, parser)
        if succeeded and not (arguments.plan or arguments.words or os.environ.get("SNAKEMAKE_PROFILE")):
            _note_nothing_to_do(opened(arguments.results), arguments.studies, left_out)
        # Only a run that made the whole report ends with its path; not a dry run or a user's target.
        whole = not (arguments.plan or arguments.words or arguments.goal)
        if logger.NOTHING_TO_DO.is_set() and not arguments.plan and not whole:
            print(unchanged.NOTHING, file=sys.stderr)
        if succeeded and whole and needs.has_r():
            unchanged.say_report(str(opened(arguments.results).results))
        sys.exit(0 if succeeded else 130 if logger.INTERRUPTED.is_set() else 1)
    except Exception as error:
        print_exception(error)
        sys.exit(1)


def _interrupt(number: int, frame: object) -> None:
    """Handle Ctrl-C: end the run; jobs that end by the same signal are not reported as failed."""
    import snakemake_logger_plugin_collstudy as logger

    if logger.INTERRUPTED.is_set():
        _end_jobs()
        return
    print("interrupted: ending the jobs that run", file=sys.stderr, flush=True)
    logger.INTERRUPTED.set()
    # A terminal sends the signal to the jobs as well, `kill` only to this process.
    patience = threading.Timer(PATIENCE_S, _end_jobs)
    patience.daemon = True
    patience.start()
    raise KeyboardInterrupt


def _end_jobs() -> None:
    """Terminate the jobs that this process runs: the commands of Snakemake's shells, but not the command that cancels Slurm's jobs."""
    import psutil

    for shell in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            for job in shell.children() or [shell]:
                if job.name() != "scancel":
                    job.terminate()


def _note_nothing_to_do(project: Project, names: str, left_out: list[str]) -> None:
    """Record that Snakemake had nothing to do, so that the next run can answer without Snakemake."""
    import snakemake_logger_plugin_collstudy as logger

    sources = project.named(names)[0]
    # The files of a user's program are unknown; without R on this computer, it is unknown whether the image has R.
    unknown = not needs.has_r() or any(source.known_after_trace for source in sources)
    if unknown or not logger.NOTHING_TO_DO.is_set():
        return
    others = [data_folder()]
    for name in project.configuration.imported_names():
        # Errors in studies that are not run do not concern this run.
        with contextlib.suppress(StudyError):
            others += project.source(name).folders()
    unchanged.note(sys.argv[1:], project.results, others, left_out)


def _parsed(parse_args: Callable[[list[str]], tuple[Any, Any]], words: list[str]) -> tuple[Any, Any]:
    """Return Snakemake's parser and options without its message about the profile in use; its errors are shown."""
    import yaml
    from snakemake.cli import parse_config
    from snakemake.exceptions import CliException, WorkflowError

    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            parser, options = parse_args(words)
        # What Snakemake reads later.
        given = parse_config(options.config)
        for path in options.configfile or []:
            path.read_bytes()
        schema = yaml.safe_load((SCHEMAS / "config.schema.yaml").read_text()) if given else {}
        for key in given:
            # `calibrate` is set by `./study calibrate`.
            if key not in (*schema["properties"], "calibrate"):
                raise ValueError(f"--config: unknown key {key!r}{allowed(schema['properties'], key)}")
        return parser, options
    except (CliException, WorkflowError, ValueError, OSError) as error:
        raise StudyError(f"arguments after -- (snakemake): {error}") from None
    except SystemExit as end:
        # Its usage is a hundred lines before the error.
        error = re.split("[Ee]rror: ", printed.getvalue())[-1]
        if end.code and error:
            raise StudyError(f"arguments after -- (snakemake): {error.strip()}") from None
        raise
