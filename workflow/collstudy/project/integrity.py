"""Check what is stored of a study, and its derived files, against their digests, without using cached summaries."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

from collstudy.project import made
from collstudy.sources.source import Source
from collstudy.store.records import Damaged
from collstudy.store.store import Store
from collstudy.study.work import Work


def of_study(source: Source) -> tuple[list[str], list[str]]:
    """Check the files of a study; return a summary and the problems, one line each."""
    name, store = source.study.name, source.context.store
    problems, found = [], Counter()
    checks = [partial(_check, store, item) for item in source.work()]
    checks += [partial(store.check, store.results / row["file"]) for row in source.verifying()]
    for check in checks:
        try:
            sealed = check()
        except FileNotFoundError:
            found["missing"] += 1
        except OSError as error:
            problems.append(f"{name}: damaged: {error.filename}: {error.strerror}")
        except Damaged as damage:
            problems.append(f"{name}: damaged: {damage}")
        else:
            how = "with a digest of the measurements" if sealed else "written by an earlier version without a digest"
            found[f"intact, {how}"] += 1
    parts = [f"{count} {what}" for what, count in found.items()] + ([f"{len(problems)} damaged"] if problems else [])
    stored = f"{len(checks)} stored files expected: {', '.join(parts)}" if checks else "no stored files expected"
    count, changes = of_derived(name, source.folder)
    return [f"{name}: {stored}", *count], problems + changes


def _check(store: Store, item: Work) -> bool:
    """Check what is stored of a piece of work; return whether it has a digest. Raises Damaged and OSError."""
    content = store.file(item).read_bytes()
    _, sealed = store.checked(content, item)
    if item.in_folder:
        store.check_files(item, content)
    return sealed


def of_derived(name: str, folder: Path) -> tuple[list[str], list[str]]:
    """Check the derived files in the folder of a study (or of all results, for the report); return a summary and the changed files."""
    changes = [text for texts in made.changed(folder).values() for text in texts]
    lines = [f"{name}: {made.count(folder)} derived files, {len(changes)} of them changed"]
    return lines, [f"{name}: {folder / text}" for text in changes]
