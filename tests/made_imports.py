"""Studies that import files: as ./study import drafts them for a folder, and as a run collects them."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.base.files import write_atomically
from collstudy.base.paths import ROOT
from collstudy.project.studies import Project
from collstudy.sources.importing.drafting.draft import draft
from collstudy.study.config import Configuration
from conftest import csv_rows

CONFIGURATION = Configuration(ROOT / "config")
HEAD = "title: Theirs\nquestion: q\nmachine: orfeo-thin\n"
#: A study of raw output whose names have algorithm, mapping and number of ranks.
RAW = """
import:
  files:
    - path: {folder}/{{algorithm}}_{{mapping}}_{{processes}}.txt
      collective: bcast
      format: omb
"""
#: A table of times: algorithm, mapping, number of ranks, size and time.
GRID = [
    (algorithm, mapping, ranks, size, f"{0.2 * ranks + size / 1000:.2f}")
    for algorithm in ("linear", "chain") for mapping in ("core", "node") for ranks in (2, 4, 6) for size in (1, 64, 1024, 4096)
]  # fmt: skip


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, whose names may have folders; those that end with .gz are compressed."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content = text.encode() if isinstance(text, str) else text
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder


def joined(rows: list[tuple], header: str = "", separator: str = ",") -> str:
    """Return rows as the text of a table."""
    return (f"{header}\n" if header else "") + "".join(separator.join(map(str, row)) + "\n" for row in rows)


def output(title: str, *times: float) -> str:
    """Return raw output of OSU Micro-Benchmarks for sizes from 1 on; without a *title*, of the latency between two ranks."""
    rows = "".join(f"{2**k:<10d}{us:18.2f}\n" for k, us in enumerate(times))
    return f"\n# OSU MPI {title}{' ' * bool(title)}Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n{rows}"


def drafted(folder: Path, machine: str | None = "orfeo-thin") -> tuple[list[dict[str, Any]], str]:
    """Return the entries of a folder's draft, with paths below the folder, and the lines with questions except for the software."""
    text, questions = draft(folder, "theirs", machine, CONFIGURATION)
    entries = yaml.safe_load(text)["import"]["files"]
    for entry in entries:
        entry["path"] = entry["path"].removeprefix(f"{folder}/")
    return entries, "\n".join(question for question in questions if not question.startswith(("mpi, ", "suite")))


def read(folder: Path, version: str | None = "4.1.5", problems: int = 0) -> list[tuple]:
    """Return the rows of the study that is drafted for a folder, after its software was filled in; check the number of *problems*."""
    text, _ = draft(folder, "theirs", "orfeo-thin", CONFIGURATION)
    document = yaml.safe_load(text)
    document["question"] = "Which?"
    document["import"] |= {"mpi": "Open MPI", "suite": "unknown"} | ({"mpi_version": version} if version else {})
    config = folder.parent / "config"
    shutil.copytree(ROOT / "config", config)
    (config / "studies" / "theirs.yaml").write_text(yaml.safe_dump(document))
    rows, account = Project(config, folder.parent / "results").source("theirs").every
    assert sum(account["problems"].values()) == problems, account["problems"]
    return [
        tuple(row[name] for name in ("algorithm", "mapping", "processes", "size_bytes", "latency_us")) for row in rows
    ]


class Import:
    """A configuration folder with a study `theirs`, and a folder for its data."""

    def __init__(self, folder: Path, machine: str = "orfeo-thin"):
        self.folder, self.data = folder, folder / "data"
        self.head = HEAD.replace("orfeo-thin", machine)
        self.data.mkdir()
        # Leave out the other studies: the imported ones would be read for comparison.
        shutil.copytree(ROOT / "config", folder / "config", ignore=shutil.ignore_patterns("studies"))
        (folder / "config" / "studies").mkdir()

    def collect(self, study: str, files: Mapping[str, str | bytes] | None = None) -> None:
        """Write the study (its text from `import` on, in which {folder} is that of the data) and files of data, and collect it."""
        write(self.data, files or {})
        text = self.head + study.format(folder=self.data)
        (self.folder / "config" / "studies" / "theirs.yaml").write_text(text)
        source = Project(self.folder / "config", self.folder / "results").source("theirs")
        source.check()
        for name, content in source.files().items():
            write_atomically(source.folder / name, content)
        source.collect()

    def refused(self, study: str, files: Mapping[str, str | bytes] | None = None) -> str:
        with pytest.raises(StudyError) as caught:
            self.collect(study, files)
        return str(caught.value)

    def rows(self, name: str = "measurements") -> list[dict[str, str]]:
        return csv_rows(self.folder / "results" / "theirs" / f"{name}.csv")

    @property
    def account(self) -> dict:
        return json.loads((self.folder / "results" / "theirs" / "study.json").read_text(encoding="utf-8"))["import"]
