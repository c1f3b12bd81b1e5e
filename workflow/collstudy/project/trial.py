"""Judge the tuning file of a program by runs of the program; a file that does not make it clearly faster is removed."""

from __future__ import annotations

import shlex
from typing import Any

from collstudy.base.files import read_csv, to_csv, write_atomically
from collstudy.launch import ran
from collstudy.project.tuner import Tuner
from collstudy.sources.trial import TrialSource, variables
from collstudy.sources.verifying import WITHDRAWN_COLUMNS, ratio_of_pairs, verdict_of
from collstudy.tuning import emission
from collstudy.tuning.findings import findings_csv, read_findings
from collstudy.tuning.rules import Placement

PAIR_COLUMNS = ["pair", "part", "default_s", "tuned_s", "speedup"]
JUDGED_COLUMNS = ["part", "speedup", "low", "high", "pairs", "confidence_pct", "verdict"]
RAN_COLUMNS = ["file", *ran.COLUMNS]


def keep(tuner: Tuner, trial: TrialSource | None, placement: Placement | None) -> None:
    """Write the result of the runs. Keep the tuning files if the program is clearly faster with them, otherwise remove them."""
    folder = tuner.folder / "tuning"
    judged: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    seen: list[dict[str, Any]] = []
    if trial:
        for part, times in trial.pairs().items():
            rows += [
                {"pair": number, "part": part, "default_s": a, "tuned_s": b, "speedup": a / b}
                for number, (a, b) in enumerate(zip(*times, strict=False), 1)
            ]
            judged += [judge(part, times, tuner.tie_pct)] if all(times) else []
        seen = [{"file": name, **row} for name in ("default", "tuned") for row in trial.ran(name)]
    reason = why_not(tuner, trial, judged)
    lines = [reason or sentence(judged)]
    if reason:
        withdrawn = _withdrawn(placement)
        for path in emission.files_in(folder):
            path.unlink()
        write_atomically(folder / "README.md", f"# No tuning file\n\n{reason}\n".encode())
    else:
        assert placement
        withdrawn = []
        own, han = emission.rules_path(folder, tuner.mpi, placement), emission.han_path(folder, placement)
        used = tuner.source.study.machine.environment | variables(
            tuner.mpi, placement, own.resolve(), han.resolve() if han.exists() else None
        )
        line = "export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in used.items())
        lines.append(line)
        text = (folder / "README.md").read_text(encoding="utf-8")
        own_part = f"## In a job script\n\n{sentence(judged)}\n\n    {line}\n\n"
        head, _, rest = text.partition("\n\n")
        write_atomically(folder / "README.md", f"{head}\n\n{own_part}{rest}".encode())
    write_atomically(folder / "result.txt", ("\n".join(lines) + "\n").encode())
    tables = tuner.folder / "tables"
    write_atomically(tables / "tuning-pairs.csv", to_csv(PAIR_COLUMNS, rows))
    write_atomically(tables / "tuning-judged.csv", to_csv(JUDGED_COLUMNS, judged))
    write_atomically(tables / "tuning-ran.csv", to_csv(RAN_COLUMNS, seen))
    tuner.write_verification([], [])
    write_atomically(tables / "tuning-withdrawn.csv", to_csv(WITHDRAWN_COLUMNS, withdrawn))
    findings = read_findings(folder / "check-emitted.csv")
    write_atomically(folder / "check.csv", findings_csv(findings if placement and not reason else []))
    print("\n".join(lines))


def judge(part: str, times: tuple[list[float], list[float]], tie_pct: float) -> dict[str, Any]:
    """Return the speed-up of one part with its interval and verdict."""
    speedup = ratio_of_pairs(*times)
    pairs = min(map(len, times))
    return {
        "part": part, **dict(zip(("speedup", "low", "high"), speedup, strict=True)), "pairs": pairs,
        # With fewer than six pairs, the interval is the whole range (base/statistics.py).
        "confidence_pct": min(95.0, 100 * (1 - 2 ** (1 - pairs))), "verdict": verdict_of(speedup, tie_pct),
    }  # fmt: skip


def sentence(judged: list[dict[str, Any]]) -> str:
    """Describe the result of the pairs in one sentence."""

    def words(row: dict[str, Any]) -> str:
        level = f"{row['confidence_pct']:.3g} %"
        return f"{row['speedup']:.3f} times as fast ({level} interval {row['low']:.3f} to {row['high']:.3f})"

    of_part = {row["part"]: row for row in judged}
    text = (
        f"With the tuning file the program is {words(of_part['whole'])} over {of_part['whole']['pairs']} pairs of runs"
    )
    if "collectives" in of_part:
        text += f"; its time in collectives is {words(of_part['collectives'])}"
    return text + "."


def why_not(tuner: Tuner, trial: TrialSource | None, judged: list[dict[str, Any]]) -> str:
    """Return why no file is kept, in one or two sentences; "" if it is kept."""
    if reason := tuner.source.nothing_to_measure():
        return f"No tuning file{reason}"
    not_measured = tuner.source.not_measured()
    cells = [row for row in read_csv(tuner.folder / "cells.csv") if row["collective"] != "program"]
    if cells and all(row["status"] in ("failed", "unproved") for row in cells):
        unproved = any(row["status"] == "unproved" for row in cells)
        failed = "failed" + " or could not be verified" * unproved
        return f"No tuning file: all measurements for the program {failed}, the first one by: {cells[0]['reason']}."
    if trial is None:
        return (
            "No tuning file: the library's default is the best for the measured cells of the program, or within noise of it."
            + not_measured
        )
    if failures := trial.failures():
        return f"No tuning file: runs of the program failed: {'; '.join(failures)}."
    whole = next((row for row in judged if row["part"] == "whole"), None)
    if whole is None or whole["pairs"] < trial.tuned.runs:
        return "No tuning file: the runs that judge it are incomplete."
    ran_by = {name: {_kind(row) for row in trial.ran(name)} for name in ("default", "tuned")}
    shown = all(row["known_by"] != "-" for row in trial.ran("default"))
    if shown and ran_by["default"] == ran_by["tuned"]:
        return "No tuning file: with it the program ran the same algorithms as without."
    if whole["verdict"] == "faster":
        return ""
    return f"No tuning file: the program is not clearly faster with it. {sentence(judged)}{not_measured}"


def _kind(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in ran.COLUMNS if key != "calls")


def _withdrawn(placement: Placement | None) -> list[dict[str, Any]]:
    """Return a row for each rule that is not kept."""
    if placement is None:
        return []
    return [
        {
            "collective": collective, "mapping": placement.mapping, "nodes": placement.used[collective][count],
            "processes": count, "size_bytes": rule.size, "rule": rule.text, "speedup": None,
        }
        for collective, table in placement.tables.items()
        for count, mine in table.items()
        for rule in mine
        if rule.algorithm != "default"
    ]  # fmt: skip
