"""Check the work of a study and its derived files against their digests, without using cached summaries. The launches that verify
tuning files are not among them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from collstudy.project import made
from collstudy.sources.source import Source
from collstudy.store.records import Damaged


def of_study(source: Source) -> tuple[list[str], list[str]]:
    """Check the files of a study; return a summary and the problems, one line each."""
    name, store = source.study.name, source.context.store
    problems, found = [], Counter()
    work = source.work()
    for item in work:
        try:
            content = store.file(item).read_bytes()
        except FileNotFoundError:
            found["missing"] += 1
            continue
        except OSError as error:
            problems.append(f"{name}: damaged: {store.file(item)}: {error.strerror}")
            continue
        try:
            _, sealed = store.checked(content, item)
            if item.in_folder:
                store.check_files(item, content)
        except Damaged as damage:
            problems.append(f"{name}: damaged: {damage}")
            continue
        found[
            "intact, with a digest of the measurements"
            if sealed
            else "intact, written by an earlier version without a digest"
        ] += 1
    parts = [f"{count} {what}" for what, count in found.items()] + ([f"{len(problems)} damaged"] if problems else [])
    lines = (
        [f"{name}: {len(work)} stored files expected: " + ", ".join(parts)]
        if work
        else [f"{name}: no stored files expected"]
    )
    count, changes = of_derived(name, source.folder)
    return [*lines, *count], problems + changes


def of_derived(name: str, folder: Path) -> tuple[list[str], list[str]]:
    """Check the derived files in the folder of a study (or of all results, for the report); return a summary and the changed files."""
    changes = [text for texts in made.changed(folder).values() for text in texts]
    lines = [f"{name}: {made.count(folder)} derived files, {len(changes)} of them changed"]
    return lines, [f"{name}: {folder / text}" for text in changes]
