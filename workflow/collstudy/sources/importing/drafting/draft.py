"""Draft a study that imports a folder of results: its files, the likely meaning of columns and names, and open questions."""

from __future__ import annotations

import re
from pathlib import Path

from collstudy.base.errors import StudyError, allowed, nearest
from collstudy.base.lazy import lazy
from collstudy.base.paths import ROOT
from collstudy.sources.importing.drafting.entries import entries_of, merged, pico_entries
from collstudy.sources.importing.drafting.file_names import machines_in
from collstudy.sources.importing.drafting.grouping import groups_of, special
from collstudy.sources.importing.drafting.scripts import questions_about_scripts
from collstudy.sources.importing.drafting.shared_cells import questions_about
from collstudy.sources.importing.drafting.software import software_of
from collstudy.sources.importing.formats import omb
from collstudy.sources.importing.formats.outputs import OUTPUTS
from collstudy.study.config import Configuration
from collstudy.study.machines import Machine

yaml = lazy("yaml")


def draft(folder: Path, name: str, machine: str | None, configuration: Configuration) -> tuple[str, list[str]]:
    """Return the text of the study's YAML and the open questions. Raises StudyError for a folder with nothing to import."""
    if not folder.is_dir():
        raise StudyError(f"{folder}: " + ("a file; name its folder" if folder.is_file() else "no such folder"))
    folder = folder.absolute()
    if special(str(folder)):
        raise StudyError(f"{folder}: {special(str(folder))}; rename the folder")
    questions: list[str] = []
    imported = [kind for kind in configuration.machine_names() if _is_imported(kind, configuration)]
    known = _known_machine(machine, imported, configuration, questions)
    catalogue = configuration.catalogue
    runs, groups = pico_entries(folder), groups_of(folder, catalogue, questions)
    entries = [
        *runs,
        *merged([(entry, group.paths) for group in groups for entry in entries_of(group, catalogue, known)]),
    ]
    if not entries:
        unread = [question for question in questions if not question.startswith("machine: ")]
        suites = ", ".join(output.SOFTWARE["suite"] for output in OUTPUTS.values())
        raise StudyError(
            f"{folder}: contains no readable CSV file, no output of a known suite ({suites}), and no archive of PICO"
            + "".join(f"; {text}" for text in unread)
        )
    questions += questions_about_scripts(folder)
    said = machines_in(folder, imported)
    questions += questions_about(entries, said)
    if len(machines := sorted(set(said.values()))) > 1:
        questions.append(f"files: their names say {' and '.join(machines)}; give each machine a study of its own")
    formats = {entry.get("format") for entry in entries}
    outputs = [output for kind, output in OUTPUTS.items() if kind in formats]
    results = [*{path for group in groups for path in group.paths}, *(Path(entry["metadata"]) for entry in runs)]
    suites = {output.SOFTWARE["suite"] for output in outputs} | {"PICO" for _ in runs}
    software, about = software_of(folder, sorted(results), suites)
    questions += about
    for output in outputs:
        software |= {key: name for key, name in output.SOFTWARE.items() if key != "suite"}
        if len(formats) > 1 and output is not omb:
            questions.append(
                f"files: output of {output.SOFTWARE['suite']} and other files; give each a study of its own"
            )
    # YAML and terminals do not take the control characters of damaged files.
    questions = [re.sub(r"[^ -~\u00a1-\ud7ff]", "?", question) for question in _by_text(questions, folder)]
    for entry in entries:
        # Relative paths start at the checkout.
        entry["path"] = entry["path"].removeprefix(f"{ROOT}/")
    document = {
        "title": f"Measurements of {name}", "question": "?", "machine": machine or "?", "import": {**software, "files": entries},
    }  # fmt: skip
    head = [f"# Drafted by ./study import from {folder}. Check every line; not determined:"]
    head += [f"# - {question}" for question in questions]
    return "\n".join(head) + "\n" + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), questions


def _is_imported(machine: str, configuration: Configuration) -> bool:
    return "kind: imported" in configuration.machine_path(machine).read_text(encoding="utf-8")


def _known_machine(
    name: str | None, imported: list[str], configuration: Configuration, questions: list[str]
) -> Machine | None:
    """Return the machine of the measurements; ask about it if it is not given or has no file."""
    keys = (
        "kind: imported, label, and levels: [{name: node, count: 2}, {name: socket, count: 2}, {name: core, count: 12}]"
    )
    if name is None:
        questions.append(
            f"machine: the machine of the measurements; a file of kind imported{allowed(imported)}; "
            f"for another machine write config/machines/NAME.yaml: {keys}"
        )
        return None
    if name not in configuration.machine_names():
        questions.append(f"machine: config/machines/{name}.yaml does not exist yet{nearest(name, imported)}: {keys}")
        return None
    machine = configuration.machine(name)
    if machine.kind != "imported":
        raise StudyError(
            f"--machine: {name} is of kind {machine.kind}; an import needs kind imported{allowed(imported)}"
        )
    return machine


def _by_text(questions: list[str], folder: Path) -> list[str]:
    """Return each question once, with the first patterns (relative to the folder) that it is about."""
    found: dict[str, list[str]] = {}
    for question in questions:
        about = re.fullmatch(rf"{re.escape(str(folder))}/(.* \(\d+ files?\)): (.*)", question)
        patterns = found.setdefault(about.group(2) if about else question, [])
        patterns += [about.group(1)] if about and about.group(1) not in patterns else []
    return [f"{_some(patterns)}: {text}" if patterns else text for text, patterns in found.items()]


def _some(patterns: list[str]) -> str:
    return ", ".join(patterns[:3]) + f" and {len(patterns) - 3} more" * (len(patterns) > 3)
