"""`./study advise`: recommend an algorithm from the available results, or name the cells to measure for a decision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv
from collstudy.base.statistics import median_interval
from collstudy.store.described import read_study, with_versions
from collstudy.store.measurements import read_measurements, whole
from collstudy.study.catalogue import Catalogue
from collstudy.tuning.emission import rules_path
from collstudy.tuning.intel import as_intel_reads
from collstudy.tuning.nearest import Measured, atlas_answer, levels_of, likeness, shape_of
from collstudy.tuning.question import Question, count_of_nodes
from collstudy.tuning.readers.dispatch import read
from collstudy.tuning.readers.known import Known
from collstudy.tuning.rules import (
    Placement,
    as_release_reads,
    decision_at,
    parse_parameters,
    placements,
    read_decisions,
    selected,
)  # fmt: skip
from collstudy.tuning.trees import as_mpich_reads


def _reach(values: Sequence[int]) -> str:
    """Return the range of ascending values in words."""
    return f"{values[0]}" if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def answer(folder: Path, question: Question, catalogue: Catalogue) -> tuple[bool, list[str]]:
    """Answer from one study; return whether it has a decision, and the lines to print."""
    document = read_study(folder)
    of_program, rounds = document.get("judged_by_runs", False), document.get("sampling", {}).get("rounds", 0)
    kind = "simulated" if document["simulated"] else "measured"
    # Labels of simulated machines may already contain the word.
    label = document["machine"]["label"].removesuffix(f", {kind}")
    library = "" if document["simulated"] else with_versions(document["provenance"], "mpi")
    head = f"Study {document['name']} ({', '.join(filter(None, (label, library, kind)))}):"
    path = folder / "tuning" / "decisions.csv"
    try:
        decisions = read_decisions(path)
    except StudyError as error:
        return False, [head, f"  no decision: {error}"]
    files = placements(decisions, of_program=of_program)
    wanted = (question.collective, question.mapping)
    decided = [row for row in read_csv(path) if (row["collective"], row["mapping"]) == wanted]
    at_count = [row for row in decided if _shape(row) == (question.processes, question.nodes)]
    placement = next((one for one in files if _covers(one, question)), None)
    shape = (*wanted, question.processes, question.nodes)
    own = [one for one in decisions if (one.collective, one.mapping, one.processes, one.nodes) == shape]
    found = decision_at(own, question.size, of_program)
    if placement is None or found is None:
        return False, [head, *_cells_to_measure(document, question, decided)]
    size = found.size
    row = next(row for row in at_count if whole(row["size_bytes"]) == size)
    row = _after_verification(folder, row)
    file = rules_path(folder / "tuning", document["provenance"]["mpi"], placement)
    row, file_lines = _in_file(file, document, placement, question, row, catalogue)
    variant = f" [{row['parameters']}]" if row["parameters"] and row["algorithm"] != "default" else ""
    lines = [head, f"  use: {row['algorithm']}{variant}" + (f" ({row['reason']})" if row["reason"] else "")]
    shapes = placement.used[question.collective].items()
    cells = {(whole(one["processes"]), whole(one["allocated"])) for one in decided if _shape(one) in shapes}
    lines += _expectation(folder, question, row, size, kind, cells, rounds > 0)
    if document["simulated"]:
        lines.append(f"  {_typical_error(folder.parent, document['machine']['name'], question)}")
    return True, lines + file_lines


def _in_file(
    path: Path,
    document: dict[str, Any],
    placement: Placement,
    question: Question,
    row: dict[str, str],
    catalogue: Catalogue,
) -> tuple[dict[str, str], list[str]]:
    """Return the decision, replaced by the default if the study's tuning file has withdrawn it, and the lines on that file."""
    decided = row["algorithm"] != "default"
    if not path.exists():
        if decided and (path.parent / "result.txt").exists():
            why = f"  rules file: none; why: {path.parent / 'README.md'}"
            return _default(row, "the program keeps no tuning file"), [why]
        none = "  rules file: none; add `analysis: {tuning: {}}` to the study to write one"
        return row, [none] * decided
    how, size = document["provenance"], question.size or 0
    version = how["mpi_version"] if how["mpi"] == "openmpi" else "5.0.7"
    try:
        found = read(path, Known(catalogue, version)).at(question.collective, question.processes, size, question.nodes)
    except StudyError as error:
        return row, [f"  rules file: {error}"]
    said = {rule.algorithm for rule in found} or {"default"}
    if row["algorithm"] in said or (how["mpi"] == "mpich" and not decided):
        return row, [f"  rules file: {path.resolve()} (usage: README.md beside it)"] * decided
    if decided and how["mpi"] != "nccl" and _can_express(how, placement, question, row, catalogue):
        row = _default(row, f"the rule {row['algorithm']} was withdrawn: it was slower on fresh launches")
        return row, []
    other = " or ".join(sorted(str(name) for name in said))
    words = "the library's default" if other == "default" else other
    return row, [f"  rules file: {path.resolve()} selects {words} here: its format cannot express the decision"]


def _can_express(
    how: dict[str, Any], placement: Placement, question: Question, row: dict[str, str], catalogue: Catalogue
) -> bool:
    """Return whether the file of the study's own library can express a decision."""
    if how["mpi"] == "impi":
        placement = as_intel_reads(placement)
    elif how["mpi"] == "mpich":
        placement = as_mpich_reads(placement)
    else:
        placement = as_release_reads(placement, catalogue, how["mpi_version"])
    rule = selected(placement.tables[question.collective], question.processes, question.size or 0)
    return rule.choice == (row["algorithm"], parse_parameters(row["parameters"]))


def _default(row: dict[str, str], reason: str) -> dict[str, str]:
    """Return a decision replaced by the default."""
    return {
        **row, "algorithm": "default", "parameters": "", "reason": reason, "expected_us": row["default_us"], "gain_pct": "0",
    }  # fmt: skip


def _shape(row: dict[str, str]) -> tuple[int | None, int | None]:
    """Return the numbers of processes and of nodes of a decision."""
    return whole(row["processes"]), whole(row["nodes"])


def _covers(placement: Placement, question: Question) -> bool:
    """Return whether a placement has decisions for the question's collective, mapping and shape."""
    used = placement.used.get(question.collective, {})
    return placement.mapping == question.mapping and used.get(question.processes) == question.nodes


def _typical_error(results: Path, machine: str, question: Question) -> str:
    """Describe the error of the simulated machine, from the study that compares it with the real one."""
    for table in sorted(results.glob("*/tables/accuracy.csv")):
        document = read_study(table.parent.parent)
        wanted = (question.collective, "all")
        rows = {row["mapping"]: row for row in read_csv(table) if (row["collective"], row["algorithm"]) == wanted}
        row = rows.get(question.mapping) or rows.get("all")
        if document["machine"]["name"] == machine and row:
            held_out = "held-out " if row["held_out"] == "TRUE" else ""
            return (
                f"simulated, typically off by {float(row['median_abs_error_pct']):.0f} % (median of {int(float(row['cells']))} "
                f"{held_out}cells, mapping {row['mapping']}; one in ten by more than "
                f"{float(row['p90_abs_error_pct']):.0f} %; study {document['name']})"
            )
    return "simulated; no study compares the machine with a real one"


def _after_verification(folder: Path, row: dict[str, str]) -> dict[str, str]:
    """Return a decision, replaced by the default if its rule was withdrawn."""
    for gone in read_csv(folder / "tables" / "tuning-withdrawn.csv"):
        keys = ("collective", "mapping", "nodes", "processes", "size_bytes")
        if all(whole(gone[k]) == whole(row[k]) if k not in keys[:2] else gone[k] == row[k] for k in keys):
            return _default(row, f"{gone['rule']} was slower on fresh launches")
    return row


def _expectation(
    folder: Path, question: Question, row: dict[str, str], size: int | None, kind: str, cells: set[tuple], sampled: bool
) -> list[str]:
    """Return lines about the expected latency with its interval, that of the default, and the underlying cells (all, for a sampled study).

    *cells* has (processes, nodes as in measurements.csv) of the file's decisions for the collective.
    """
    variant = (row["algorithm"], row["parameters"])
    samples: dict[tuple[str, str], dict[int, list[float]]] = {}
    points = set()
    for found in read_measurements(folder / "measurements.csv"):
        if (found.collective, found.mapping) != (question.collective, question.mapping):
            continue
        points.add((found.name, found.processes, found.size))
        if (found.processes, found.nodes) in cells and found.size == size:
            key = (found.algorithm, found.parameters)
            samples.setdefault(key, {}).setdefault(found.processes, []).append(found.value)
    own = samples.get(variant, {})
    lines = []
    if question.processes in own:
        values = own[question.processes]
        interval = median_interval(values)
        if interval:
            text = f"[{interval[0]:.3g}, {interval[1]:.3g}] us over {len(values)} launches"
        elif kind == "simulated":
            text = "the simulation is deterministic: no interval"
        else:
            text = _noise_interval(median(values), row)
        lines.append(f"  expected latency: {median(values):.4g} us, {text}")
        basis = [question.processes]
    else:
        counts = sorted(own)
        basis = [p for p in counts if p < question.processes][-1:] + [p for p in counts if p > question.processes][:1]
        ends = sorted(median(own[p]) for p in basis)
        spread = f", between the neighbours' {ends[0]:.4g} and {ends[-1]:.4g} us" if ends and not sampled else ""
        expected = f"{float(row['expected_us']):.4g} us, {row['basis']}" if row["expected_us"] else "not known"
        lines.append(f"  expected latency: {expected}{spread}")
    if row["algorithm"] != "default":
        gain = float(row["gain_pct"])
        longer = f"{abs(gain):,.{0 if abs(gain) >= 10 else 1}f} % {'longer' if gain >= 0 else 'less'}"
        lines.append(f"  the default takes {longer} ({float(row['default_us']):.4g} us)")
        lines += _verified(folder, question, size)
    others = len(samples) - (variant in samples)
    named = f"{others} {'other ' * (variant in samples)}algorithm{'s' * (others != 1)}"
    if sampled:
        used = f"a model of {len(points)} points {kind} in rounds"
    elif variant in samples:
        used = f"{' '.join(filter(None, variant))} and {named}, {kind}, at {' and '.join(map(str, basis))} processes"
        used += f", {size} B" * (size is not None)
    else:
        used = f"{named}, {kind}, but not {' '.join(filter(None, variant))}"
    lines.append(f"  based on: {used}")
    if question.size is not None and size != question.size:
        lines.append(f"  {question.size} B was not {kind}; the decision for {size} B applies")
    return lines


def _noise_interval(latency: float, row: dict[str, str]) -> str:
    """Return the interval of the latency of one launch and where its noise is from."""
    origins = {"launches": "launches of other cells", "same messages": "algorithms that were measured twice"}
    if not row["noise_pct"]:
        return "one launch: no interval"
    half = 1.96 * float(row["noise_pct"]) / 100 * latency
    origin = origins.get(row["noise_from"], "neighbouring cells")
    return f"[{max(latency - half, 0):.3g}, {latency + half:.3g}] us (one launch; noise from {origin})"


def _verified(folder: Path, question: Question, size: int | None) -> list[str]:
    for row in read_csv(folder / "tables" / "tuning-verification.csv"):
        where = (row["collective"], row["mapping"], int(row["nodes"]), int(row["processes"]), whole(row["size_bytes"]))
        if where == (question.collective, question.mapping, question.nodes, question.processes, size):
            return [
                f"  verified on fresh launches: {row['verdict']}, speed-up {float(row['speedup']):.3f} "
                f"[{float(row['speedup_low']):.3f}, {float(row['speedup_high']):.3f}]"
            ]
    return ["  not verified at this cell"]


def _cells_to_measure(document: dict[str, Any], question: Question, decided: list[dict[str, str]]) -> list[str]:
    """Return lines that name the cells to measure: the default and all algorithms of the study at this placement and size."""
    entry = document["collectives"][question.collective]
    lines = [f"  no decision: {question.label} is outside of the decided range"]
    for nodes in sorted({whole(row["nodes"]) for row in decided}):
        here = [row for row in decided if whole(row["nodes"]) == nodes]
        counts = sorted({whole(row["processes"]) for row in here})
        sizes = sorted({whole(row["size_bytes"]) for row in here if row["size_bytes"]})
        reach = f", {_reach(sizes)} B" if sizes else ""
        lines.append(f"  decided on {count_of_nodes(nodes)}: {_reach(counts)} processes{reach}")
    names = ", ".join(dict.fromkeys(one["name"] for one in entry["algorithms"]))
    size = f", sizes around {question.size} B" if question.size is not None else ""
    lines.append(
        f"  cells to measure: {question.collective} with {names}; mapping {question.mapping}, {count_of_nodes(question.nodes)}, "
        f"{question.processes} processes{size}" + "; at least three launches each" * (not document["simulated"])
    )
    return lines


def advise(
    results: Path,
    question: Question,
    study: str | None,
    catalogue: Catalogue,
    asker: Sequence[tuple[str, int]] | None = None,
    atlas: Sequence[Measured] = (),
) -> tuple[bool, list[str]]:
    """Look up the decisions of all studies (or of *study*), then the machines of the *atlas*; return whether one applies, and the lines.

    With *asker* (the levels of the requested machine), studies of the most similar machines come first, each with its similarity.
    A machine of the atlas whose study has a decision is answered by that study.
    """
    if question.size is None and question.collective != "barrier":
        raise StudyError(f"{question.collective} needs --size")
    folders = sorted(path.parent.parent for path in results.glob(f"{study or '*'}/tuning/decisions.csv"))
    if not folders and not atlas:
        raise StudyError(
            f"study {study} has no decisions: they need `analysis: {{tuning: {{}}}}` in its file and ./study run {study}"
            if study
            else "no decisions yet: ./study run tuning, or a study of your own with `analysis: {tuning: {}}`"
        )
    answers = []
    without = [folder for folder in folders if question.collective not in read_study(folder)["collectives"]]
    folders = [folder for folder in folders if folder not in without]
    for folder in folders:
        known, lines = answer(folder, question, catalogue)
        distance = 0.0
        if asker is not None:
            document = read_study(folder)
            distance, words = likeness(shape_of(asker), shape_of(levels_of(document)))
            lines.insert(1, f"  {words}")
        answers.append((known, distance, lines))
    decided = {folder.name for folder, (known, *_) in zip(folders, answers, strict=True) if known}
    # Two studies may import the same measurements: those of a study that decides come first.
    told = set()
    for measured in sorted(atlas, key=lambda one: one.study not in decided):
        known, lines = atlas_answer(measured, question)
        same = (measured.label, *lines[1:])
        if known and same not in told:
            told.add(same)
            if measured.study in decided:
                continue
            distance, words = likeness(shape_of(asker), shape_of(measured.levels)) if asker is not None else (0.0, "")
            answers.append((True, distance, [lines[0], *([f"  {words}"] if words else []), *lines[1:]]))
    ordered = sorted(answers, key=lambda one: (not one[0], one[1]))
    lines = [f"{question.label}:", *(line for *_, mine in ordered for line in mine)]
    if not ordered:
        lines.append("No study has a decision for this call, and no machine of the atlas was measured near it.")
    if without:
        lines.append(f"No {question.collective} in: {', '.join(folder.name for folder in without)}")
    return any(known for known, _, _ in ordered), lines
