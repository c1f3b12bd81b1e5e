"""Write ranks.csv, edges.csv and exchanges.csv of a study that a test made: python launched.py FOLDER [FOLDER...].

The study's machine, mappings and rows are in its study.json and measurements.csv; Open MPI's trees count.
"""

import csv
import json
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "workflow"))

from collstudy.sources import edges  # noqa: E402
from collstudy.study.config import Configuration  # noqa: E402
from collstudy.study.machines import Level, Machine  # noqa: E402
from collstudy.tuning.rules import parse_parameters  # noqa: E402


def write(folder: Path) -> None:
    """The three tables of one study."""
    study = json.loads((folder / "study.json").read_text())
    levels = tuple(Level(level["name"], level["count"]) for level in study["machine"].get("levels") or ())
    machine = Machine(study["machine"]["name"], "simulated", "", "openmpi", levels, oversubscribe=True)
    launched = {}
    with open(folder / "measurements.csv", newline="") as stream:
        for row in csv.DictReader(stream):
            entry = study["mappings"].get(row["mapping"], {})
            place = (
                row["mapping"],
                tuple(entry.get("cycle", ())),
                int(row["nodes"]),
                int(float(row["processes"])),
                None,
            )
            key = (
                row.get("mpi") or "openmpi",
                row["collective"],
                row["algorithm"],
                parse_parameters(row.get("parameters") or ""),
            )
            launched[edges.Launched(*key, *place, entry.get("hosts"))] = None
    edges.write(SimpleNamespace(machine=machine), list(launched), Configuration(ROOT / "config").catalogue, folder)


for name in sys.argv[1:]:
    write(Path(name))
