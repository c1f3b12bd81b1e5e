"""A study as created by the workflow, for tests of the report."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path

NASTY = (
    "A & B <b>bold</b> $x_1$ 100% --map-by -? #1 @fig-nowhere `code` *star* [l](u) \\end {{< include x >}} ~t~ "
    "\"q\" 'r' | pipe"
)
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="504pt" height="288pt" viewBox="0 0 504 288">'
    '<rect width="504" height="288" fill="#eee"/>'
    '<text x="20" y="40" style="font-size: 12px; font-family: \'No Such Font\';">latency</text></svg>'
)
#: A PNG with one white pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAG7buVgAAAABJRU5ErkJggg==")


def write_csv(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


SECTIONS = {
    "other": "other",
    "bcast-decision-map": "bcast/wins",
    "bcast-default-vs-best": "bcast/wins",
    "bcast-winners": "bcast/wins",
    "answer-collectives": "answer",
    "bcast-words": "bcast/wins",
    "bcast-columns": "bcast/wins",
}


#: The results of the analysis for a collective, for the front page (docs/architecture.md).
BY_COLLECTIVE = {
    "machine": "m", "simulated": "FALSE", "collective": "bcast", "slower_pct": 25, "geometric_mean_pct": 12.5, "mean_pct": 14,
    "median_pct": 3, "p90_pct": 40, "p99_pct": 80, "max_pct": 90, "cells": 40, "best_other": "Binary tree",
    "best_other_geometric_mean_pct": 4, "slowest_cells": "", "mean_there_pct": "", "slowest_pct": "",
}  # fmt: skip
#: A rule that was decided with half of the process counts: on the other half, the default takes 20 % longer.
REGRET = {
    "collective": "bcast", "policy": "tuned", "algorithm": "", "split": "decided at 2", "mapping": "all",
    "geometric_mean_pct": 1, "mean_pct": 1, "median_pct": 0, "p90_pct": 2, "p99_pct": 3, "max_pct": 4, "cells": 20,
    "groups": 5, "degrees": 4, "gain_pct": 20, "gain_low_pct": 10, "gain_high_pct": 30.90909,
}  # fmt: skip


def make_study(results: Path, name: str, simulated: bool, title: str) -> Path:
    """Write a small study as created by the workflow (docs/files.md), with failed cells and a missing figure."""
    folder = results / name
    _write_measured(folder, simulated, title)
    _write_figures(folder)
    _write_tables(folder, simulated)
    _write_sentences(folder, simulated)
    return folder


def _write_measured(folder: Path, simulated: bool, title: str) -> None:
    algorithms = [{"name": "default", "label": "Default"}, {"name": "binary_tree", "label": "Binary tree"}]
    how = {"suite": "collbench", "suite_version": "1.0", "mpi": "openmpi", "mpi_version": "4.1.4", "iterations": [10],
           "warmup": [2], "launches": {"min": 1, "max": 5}, "simulator": "SimGrid SMPI" if simulated else "",
           "simulator_version": "3.32" if simulated else ""}  # fmt: skip
    study = {
        "name": folder.name, "title": title, "question": f"Which is faster? {NASTY}", "simulated": simulated, "provenance": how,
        "machine": {"name": "m", "kind": "simulated" if simulated else "local", "label": "A machine",
                    "levels": [{"name": "node", "count": 2}, {"name": "core", "count": 4}]},
        "collectives": {
            "bcast": {"algorithms": algorithms, "mappings": ["core"], "processes": [2, 4], "sizes": [1, 2]},
        },
        "analysis": {},
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps(study), encoding="utf-8")
    cell = {"study": folder.name, "collective": "bcast", "mapping": "core", "nodes": 1, "launches": 1, "cell": ""}
    states = [("default", 2, "measured", ""), ("default", 4, "failed", "time limit & <crash> of $5_% |"),
              ("binary_tree", 2, "missing", "never launched"),
              ("binary_tree", 4, "unproved", "coll/sm ran")]  # fmt: skip
    rows = [{**cell, "algorithm": a, "processes": p, "status": s, "reason": r} for a, p, s, r in states]
    write_csv(folder / "cells.csv", rows)
    measurement = {"study": folder.name, "machine": "m", "simulated": str(simulated).upper(), "suite": "collbench",
                   "mpi": "openmpi", "collective": "bcast", "algorithm": "default", "parameters": "",
                   "mapping": "core", "nodes": 1,
                   "processes": 2, "size_bytes": 1, "launch": 1, "latency_us": 1.5, "min_latency_us": "",
                   "max_latency_us": "", "iterations": 10, "proved": "", "cell": ""}  # fmt: skip
    write_csv(folder / "measurements.csv", [measurement])


def _write_figures(folder: Path) -> None:
    (folder / "figures").mkdir()
    (folder / "figures" / "bcast-latency.svg").write_text(SVG, encoding="utf-8")
    figure = {"title": "T", "caption": f"Latency. {NASTY}", "width_in": 7, "height_in": 4}
    (folder / "figures" / "bcast-shapes.svg").write_text(SVG + f"<!--{'x' * 500_000}-->", encoding="utf-8")
    (folder / "figures" / "bcast-shapes.png").write_bytes(PNG)
    ids = ["bcast-latency", "bcast-decision-map", "bcast-shapes", "other"]
    turned = {"bcast-shapes": "figures/bcast-shapes.json"}
    (folder / "figures" / "bcast-shapes.json").write_text('{"data": [], "layout": {}}', encoding="utf-8")
    rows = [
        {
            "id": i,
            "section": SECTIONS.get(i, "bcast"),
            "file": f"figures/{i}.svg",
            **figure,
            "interactive": turned.get(i),
        }
        for i in ids
    ]
    write_csv(folder / "figures" / "index.csv", rows)


def _write_tables(folder: Path, simulated: bool) -> None:
    values = [
        {"algorithm": "binary_tree", "mapping": "core", "mean_difference_us": -1.234567, "note": f"{NASTY} @wisner-svd"}
    ]
    write_csv(folder / "tables" / "bcast-default-vs-best.csv", values * 3)
    write_csv(folder / "tables" / "bcast-winners.csv", [{"processes": p, "latency_us": p / 7} for p in range(400)])
    write_csv(folder / "tables" / "bcast-words.csv", [{"n": f"line{n:02}", "words": "long " * 110} for n in range(15)])
    columns = dict.fromkeys(["winner", "tied", "runner_up"], "Recursive doubling")
    columns |= {f"number_{n}_of_many_us": n for n in range(7)}
    write_csv(folder / "tables" / "bcast-columns.csv", [columns])
    (folder / "tables" / "bcast-rowless.csv").write_text("algorithm,latency_us\n", encoding="utf-8")
    machine = {**BY_COLLECTIVE, "simulated": str(simulated).upper()}
    write_csv(folder / "tables" / "answer-collectives.csv", [machine])
    write_csv(folder / "tables" / "tuning-regret.csv", [REGRET, {**REGRET, "split": "both halves"}])
    decision = {"collective": "bcast", "mapping": "core", "nodes": 1, "processes": 2, "size_bytes": 2, "algorithm": "binary_tree",
                "basis": "measured", "gain_pct": 20}  # fmt: skip
    write_csv(folder / "tuning" / "decisions.csv", [decision])
    tables = [
        "answer-collectives",
        "bcast-rowless",
        "bcast-default-vs-best",
        "bcast-winners",
        "bcast-words",
        "bcast-columns",
        "bcast-gone",
    ]
    write_csv(
        folder / "tables" / "index.csv",
        [
            {
                "id": i,
                "section": SECTIONS.get(i, "bcast"),
                "file": f"tables/{i}.csv",
                "caption": f"Table {i} {NASTY} [@derin2025]",
            }
            for i in tables
        ],
    )


def _write_sentences(folder: Path, simulated: bool) -> None:
    said = {
        "how": f"Measured as `./run -- {folder.name}|x`. {NASTY.replace('`', '')}",
        "lacking": "3 of 4 grid cells have no usable number.",
        "bcast": "The default is slow.",
    }
    if simulated:
        said["simulated"] = "Every number of this study was computed by SimGrid SMPI 3.32."
    rows = [
        {"section": section, "order": 1, "text": text, "claim": "FALSE" if section != "bcast" else "TRUE",
         "shown_in": "figures/bcast-latency.svg;tables/bcast-words.csv" if section == "bcast" else ""}
        for section, text in said.items()
    ]  # fmt: skip
    write_csv(folder / "sentences.csv", rows)


def make_pair(results: Path, name: str) -> None:
    """Write a study of only two ranks without decisions, like that of a first run on two cores."""
    folder = make_study(results, name, False, "A pair")
    (folder / "tuning" / "decisions.csv").unlink()
    study = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    study["collectives"]["bcast"]["processes"] = [2]
    (folder / "study.json").write_text(json.dumps(study), encoding="utf-8")
    (folder / "cells.csv").write_text("\n".join((folder / "cells.csv").read_text().splitlines()[:2]) + "\n")
