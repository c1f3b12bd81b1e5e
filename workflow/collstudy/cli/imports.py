"""Commands for measurements of other authors: compact, fetch, import."""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError, check_known
from collstudy.base.files import to_csv, write_atomically
from collstudy.base.paths import ROOT
from collstudy.cli.commands import add, typed_path
from collstudy.project.studies import Project
from collstudy.sources.importing.checking import checks
from collstudy.sources.importing.checking.findings import rows_of
from collstudy.sources.importing.drafting import draft
from collstudy.sources.importing.files import data_folder, files_of
from collstudy.sources.importing.formats import compact, pico
from collstudy.sources.importing.reading import read_all
from collstudy.sources.source import CHECK_COLUMNS
from collstudy.study import allocations
from collstudy.study.config import Configuration
from collstudy.study.document import read_yaml
from collstudy.study.names import check_name

DATA = ROOT / "data"


class Tables(Configuration):
    """A configuration whose studies are the descriptions in data/."""

    kind = "table"

    def study_names(self) -> list[str]:
        """Return the names of the tables that have a description."""
        return sorted(path.stem for path in DATA.glob("*.yaml") if path.stem != "fetch")

    def study_path(self, name: str) -> Path:
        """Return the path of a table's description."""
        return DATA / f"{name}.yaml"


def add_commands(commands: Any) -> None:
    """Add the commands of this module to the parser."""
    packing = add(commands, "compact", make_compact, "make tables of data/ from the authors' files")
    packing.add_argument("names", nargs="+", help="names of descriptions data/NAME.yaml")
    fetching = add(commands, "fetch", fetch, "download other authors' files that may not be redistributed")
    fetching.add_argument("name", help="an entry of data/fetch.yaml")
    drafting = add(commands, "import", draft_study, "draft the study that imports a folder of results")
    drafting.add_argument("folder", type=typed_path, help="folder of result files")
    drafting.add_argument("--machine", help="a machine of kind imported (config/machines/)")
    drafting.add_argument("--name", help="name of the study (default: the folder's name)")


def make_compact(arguments: argparse.Namespace) -> int:
    """Write the tables that data/NAME.yaml describes: data/NAME.csv.gz, NAME.checks.csv and, for PICO's runs, NAME.nodes.csv."""
    configuration = Tables(ROOT / "config")
    for name in arguments.names:
        study = configuration.study(name)
        rows, account = read_all(study, configuration.catalogue)
        findings = checks.check(rows, account["problems"], study.machine, {})
        write_atomically(DATA / f"{name}.checks.csv", to_csv(CHECK_COLUMNS, rows_of(findings)))
        compact.write(DATA / f"{name}.csv.gz", rows, study.machine.cores_per_node)
        runs = [path for entry, path in files_of(study) if entry.get("format") == "pico"]
        if runs:
            found = (allocation for run in runs for allocation in pico.allocations(run))
            allocations.write_nodes(DATA / f"{name}.nodes.csv", found)
        print(f"data/{name}.csv.gz: {len(rows)} rows of {len(account['files'])} files; {len(findings)} findings")
    return 0


def fetch(arguments: argparse.Namespace) -> int:
    """Download files from the author's repository at the commit in data/fetch.yaml, and check their SHA-256."""
    # Imported here because the HTTP client takes long to load.
    import http.client
    import urllib.request

    known = read_yaml(DATA / "fetch.yaml", "fetch")
    check_known(arguments.name, known, f"data/fetch.yaml: no entry {arguments.name!r}")
    entry = known[arguments.name]
    folder = Path(data_folder()) / arguments.name
    for file in entry["files"]:
        path = folder / file["name"]
        if path.exists() and file_digest(path) == file["sha256"]:
            continue
        if path.exists():
            raise StudyError(f"{path}: already exists and differs from the author's file; move it away")
        url = f"https://raw.githubusercontent.com/{entry['repository']}/{entry['commit']}/{urllib.request.quote(file['path'])}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise StudyError(f"{url}: {error}; without network access, copy the file to {path}") from None
        if hashlib.sha256(content).hexdigest() != file["sha256"]:
            raise StudyError(f"{url}: the checksum differs from that in data/fetch.yaml; nothing was written")
        write_atomically(path, content)
        print(path)
    print(f"{folder}: complete, {len(entry['files'])} files of {entry['repository']} at {entry['commit'][:7]}")
    return 0


def draft_study(arguments: argparse.Namespace) -> int:
    """Draft a study that imports a folder of results, and list what could not be determined."""
    configuration = Project(results=arguments.results).configuration
    # A blank and the like cannot be part of a study's name.
    name = arguments.name or re.sub(r"[^\w.-]+", "-", arguments.folder.resolve().name, flags=re.ASCII).strip("-._")
    check_name(name, "a study")
    text, open_questions = draft.draft(arguments.folder, name, arguments.machine, configuration)
    path = configuration.study_path(name)
    if path.exists():
        raise StudyError(f"{path}: already exists; choose another name with --name")
    write_atomically(path, text.encode())
    print(path)
    for question in open_questions:
        print(f"not determined: {question}", file=sys.stderr)
    print(f"next: complete the study by hand, then ./study run {name}", file=sys.stderr)
    return 0
