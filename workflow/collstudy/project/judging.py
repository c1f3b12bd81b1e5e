"""The two steps from tuning decisions to verified tuning files.

`emit` writes the files, lets the library read them, and writes the blocks that verify them (sources/verifying.py): new cells
with fresh launches, on and off the measured grid, run like all blocks. `keep` compares default and tuned launches, withdraws
rules that are slower, and writes the files again.
"""

from __future__ import annotations

from collstudy.plan.blocks import write_pending
from collstudy.project import trial
from collstudy.project.studies import Project
from collstudy.project.tuner import Tuner
from collstudy.sources import verifier_of
from collstudy.tuning.findings import read_findings


def emit(project: Project, name: str) -> None:
    """Write and check the files of the decisions, and request their verification (tuning/pending.txt)."""
    tuner = Tuner(project, name)
    found = tuner.emit()
    tuner.check(found, "check-emitted.csv")
    pending = tuner.folder / "tuning" / "pending.txt"
    verifier = verifier_of(tuner.source, found)
    if verifier:
        project.request(verifier, 0, pending)
    else:
        write_pending(pending, [])


def keep(project: Project, name: str, latency_s: float = 0) -> None:
    """Judge the verified files, withdraw slower rules, and write and check the files again. *latency_s*: Project.await_files."""
    tuner = Tuner(project, name)
    # Write the files again, because a killed `keep` may have left others.
    found = tuner.emit()
    verifier = verifier_of(tuner.source, found)
    if verifier:
        project.await_files(verifier, latency_s)
    tuner.write_verifying(verifier)
    if tuner.source.judged_by_runs:
        trial.keep(tuner, verifier, found[0] if found else None)
        return
    rows = [row for pair in verifier.pairs() for row in verifier.verified(pair)] if verifier else []
    tuner.withdraw(rows)
    tuner.write_verification(rows, verifier.failures() if verifier else [])
    final = found
    if tuner.withdrawn:
        final = tuner.emit()
        print(f"{len(tuner.withdrawn)} decisions withdrawn; the files are written again")
    tuner.findings = read_findings(tuner.folder / "tuning" / "check-emitted.csv")
    tuner.check(final, "check.csv", before=found)
    if not rows:
        print(f"{name}: the files are written; no cell was measured to verify them")
        return
    changed = [row for row in rows if row.rule.algorithm != "default"]
    verdicts = [row.verdict(tuner.tie_pct) for row in changed]
    print(
        f"{name}: {len(rows)} cell{'s' * (len(rows) != 1)} verified, at {len(changed)} of them the file selects a non-default algorithm: "
        + ", ".join(f"{verdicts.count(word)} {word}" for word in ("faster", "tie", "slower"))
    )
