"""The chapters of the report, and the data that each requires of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.study.document import Place
from collstudy.study.names import APPLICATIONS, POINT_TO_POINT
from collstudy.study.sweeps import Sweep


def check_chapter(raw: dict[str, Any], sweeps: Sequence[Sweep], arms: int, where: Place) -> None:
    """Check that the study has the data for its chapter; *arms*: number of Open MPI components that it compares as algorithms."""
    named = [sweep.collective for sweep in sweeps]
    named += [entry.get("collective") for entry in raw.get("import", {}).get("files", ())]
    collective = any(name not in (*POINT_TO_POINT, *APPLICATIONS) for name in named)
    pipelined = any(choice.name.startswith("pipelined") for sweep in sweeps for choice in sweep.algorithms)
    analysis = raw.get("analysis", {})
    mappings = {name for sweep in sweeps for name in sweep.mappings}
    windows, barriers = (
        {s.collective for s in sweeps if (s.barrier == "window") == is_one} for is_one in (True, False)
    )
    both = windows & barriers
    needs = {
        "accuracy": ("analysis.compare", "compare" in analysis),
        "atlas": ("studies to gather", "gather" in raw),
        "collectives": ("a collective", collective),
        "components": ("sweeps with two components of Open MPI as algorithms", arms > 1),
        "congestion": ("applications", "applications" in raw),
        "extrapolation": ("analysis.extrapolation", "extrapolation" in analysis),
        "ladder": (
            "a point-to-point test: " + ", ".join(POINT_TO_POINT),
            any(name in POINT_TO_POINT for name in named),
        ),
        "mapping": ("sweeps of a collective with two mappings", collective and len(mappings) > 1),
        "program": ("a program", "program" in raw),
        "pipelining": ("sweeps with a pipelined algorithm", pipelined),
        "starts": ("sweeps of a collective with and without barrier: window", bool(both)),
        "svd": ("sweeps of svd", "svd" in named),
        "topology": ("sweeps of a collective", collective and bool(sweeps)),
        "tuning": ("analysis.tuning", "tuning" in analysis),
    }
    chapter = raw.get("chapter")
    what, there = needs.get(chapter, ("", True))
    if not there:
        fitting = [name for name, (_, fits) in needs.items() if fits]
        raise StudyError(
            f"{where}: the chapter {chapter} needs {what}, which this study does not have; suitable chapters: "
            + (", ".join(fitting) or "none")
        )
    if both and chapter != "starts":
        raise StudyError(
            f"{where}: {', '.join(sorted(both))} is swept with and without `barrier: window`; "
            "only `chapter: starts` can show both, so set it or split the study"
        )
