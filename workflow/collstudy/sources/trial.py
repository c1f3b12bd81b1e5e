"""Source for the runs of a program with and without its tuning files, which judge these files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from collstudy.launch import mca, mpich
from collstudy.launch.rulesfile import exported, rules_arguments, rules_file
from collstudy.sources.program import ProgramSource
from collstudy.sources.source import Context, Rows
from collstudy.sources.verifying import texts_of
from collstudy.store.described import read_study
from collstudy.study.description import Study
from collstudy.study.selection import digest_of
from collstudy.study.work import Work
from collstudy.tuning.rules import Placement


def variables(mpi: str, placement: Placement, own: Path, han: Path | None = None) -> dict[str, str]:
    """Return the environment variables that make an MPI library use the tuning file *own* of a placement, and coll/han use *han*."""
    if mpi == "mpich":
        return mpich.environment(own)
    if mpi == "impi":
        return exported(own.read_text(encoding="utf-8"))
    # An algorithm forced by the user's environment would take precedence over the file; 0 forces none.
    forced = [f"OMPI_MCA_coll_tuned_{collective}_algorithm" for collective in placement.tables]
    found = {name: "0" for name in forced if name in os.environ}
    parameters = mca.parameters_of(rules_arguments(own, han=han))
    return found | {f"OMPI_MCA_{name}": value for name, value in parameters.items()}


class TrialSource(ProgramSource):
    """Runs that judge a program's tuning files: with and without them, each untraced, traced, and once to record what ran."""

    described_by = None
    verifies = ProgramSource

    def __init__(self, study: Study, context: Context, placements: list[Placement]):
        super().__init__(study, context)
        placement = placements[0]
        document = read_study(self.folder)
        mpi: str = document["provenance"]["mpi"]
        texts = texts_of(document, placement, self.folder / "tuning")
        files = {name: rules_file(text) for name, text in texts.items()}
        environment = (
            mpich.environment_of_both(files["own"])
            if mpi == "mpich"
            else variables(mpi, placement, files["own"], files.get("han"))
        )
        # The other variables also affect what runs; paths do not.
        others = {name: value for name, value in environment.items() if "/" not in value}
        texts["variables"] = json.dumps(others, sort_keys=True)
        judged = {name: digest_of(text) for name, text in texts.items()}
        self.arms = {
            file + how: self.run(file + how, environment if file == "tuned" else {}, judged)
            for file in ("default", "tuned")
            for how in ("", "-traced", "-ran")
        }

    def work(self) -> list[Work]:
        """Return the runs."""
        return list(self.arms.values())

    def rounds(self) -> dict[int, list[Work]]:
        """Return all runs as round 0."""
        return {0: self.work()}

    def rows(self) -> Rows:
        """Return the status of the runs."""
        return Rows(self.statuses(self.work()))

    def pairs(self) -> dict[str, tuple[list[float], list[float]]]:
        """Return the times (s) of the default and of the tuned runs, which were launched in turn, in launch order: of the whole command,
        and of the collectives in traced runs.
        """

        def both(how: str, column: str) -> tuple[list[float], list[float]]:
            return self.seconds(self.arms["default" + how], column), self.seconds(self.arms["tuned" + how], column)

        return {"whole": both("", "latency_us"), "collectives": both("-traced", "comm_us")}

    def failures(self) -> list[str]:
        """Return the reasons of failed runs."""
        found = ((run.variant, self.context.read(run).failure) for run in self.arms.values())
        return [f"{variant}: {failure['reason']}" for variant, failure in found if failure]

    def ran(self, file: str) -> list[dict[str, Any]]:
        """Return what ran without (`default`) or with (`tuned`) the tuning files."""
        launches = self.context.read(self.arms[file + "-ran"]).launches
        return launches[-1]["ran"] if launches else []
