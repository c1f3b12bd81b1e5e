"""What the names of files and folders say about results: collective, algorithm, mapping, number of processes, machine."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path

from collstudy.sources.importing import nccl_tests
from collstudy.sources.importing.words import algorithm_like, algorithm_named, collective_in, field_of
from collstudy.study.catalogue import Catalogue


def collective_of(folder: Path, path: Path, catalogue: Catalogue) -> str | None:
    """Return the collective that a file's name contains, or the folder nearest to it; None if there is none."""
    folders = [folder.resolve().name, *path.relative_to(folder).parts[:-1]]
    found = (collective_in(name, catalogue) for name in (path.name, *reversed(folders)))
    return next((name for name in found if name), None)


def pattern_of(
    folder: Path, path: Path, catalogue: Catalogue, header: tuple[str, ...] = (), collective: str | None = None
) -> str:
    """Return the file's path with {algorithm}, {mapping} and {processes} in place of their values in the names of file and folders,
    unless *header* has a column for them.
    """
    collective = collective or ""
    known = {field for name in header if (field := field_of(name))}
    within = path.relative_to(folder)
    ending = path.name[len(path.name.removesuffix(".gz").rsplit(".", 1)[0]) :]
    names = [*within.parts[:-1], within.name.removesuffix(ending)]
    # Start with the file's own name: it is more specific than that of a folder.
    found = [_fields_in(name, collective, catalogue, known) for name in reversed(names)]
    return str(folder.joinpath(*reversed(found))) + ending


def _fields_in(name: str, collective: str, catalogue: Catalogue, known: set[str]) -> str:
    """Replace the parts of a name that are values of a field by {field}; *known* collects the fields."""
    parts = re.split(r"([_\-. ])", name)
    # If a word names the algorithm, r1 is a run, not the algorithm of a reduce.
    words = {part for part in parts if part.lower() not in catalogue.mappings}
    named = collective and any(algorithm_named(word, collective, catalogue) for word in words)
    letter = "" if named else collective[:1]
    result: list[str] = []
    at = 0
    while at < len(parts):
        # Find the longest run of words that names an algorithm: linear_nb, not linear.
        until = next(
            (end for end in range(len(parts), at, -2) if collective and algorithm_named("".join(parts[at:end]), collective, catalogue)),
            at + 1,
        ) if at % 2 == 0 else at + 1  # fmt: skip
        text = "".join(parts[at:until])
        before = parts[at - 2].lower() if at >= 2 and at % 2 == 0 else ""
        field, kept = _field_of(text, before, letter, collective, catalogue, known)
        if field and field not in known:
            known.add(field)
            text = f"{kept}{{{field}}}"
        result.append(text)
        at = until
    return "".join(result)


def _field_of(
    text: str, before: str, letter: str, collective: str, catalogue: Catalogue, known: set[str]
) -> tuple[str, str]:
    """Return the field that a word of a name stands for, and the part of the word before the value; "" if it stands for none.

    *before* is the word before it; *letter* stands for the collective before the number of an algorithm (b1).
    """
    words = "|".join(filter(None, (re.escape(collective), letter, "broadcast", "alg", "algo", "algorithm", "a")))
    if collective and (found := re.fullmatch(rf"({words})(\d)", text, re.IGNORECASE)):
        return "algorithm", found.group(1)
    if text.isdecimal() and before:
        if before in ("alg", "algo", "algorithm"):
            return "algorithm", ""
        # The number of a size, a launch or a job is not one of processes.
        if (field := field_of(before)) and field != "processes":
            return "", ""
    if text.removeprefix("by").lower() in catalogue.mappings:
        return "mapping", "by" * text.startswith("by")
    if found := re.fullmatch(r"(np|p|n)?(\d+)", text):
        # If there is a column of processes, a single digit is the algorithm's number.
        numbered = "processes" in known and len(text) == 1 and collective
        return "algorithm" if numbered else "processes", found.group(1) or ""
    if collective and text != collective and algorithm_in(text, collective, catalogue):
        return "algorithm", ""
    return "", ""


def algorithm_in(text: str, collective: str, catalogue: Catalogue) -> str | None:
    """Return the algorithm that a text names, or probably means; None if there is none."""
    return algorithm_named(text, collective, catalogue) or algorithm_like(text, collective, catalogue)


def nccl_pattern(path: Path) -> str:
    """Return the file's path with {algorithm} and {protocol} in place of NCCL's words; ranks and nodes are in the file."""
    parts = []
    for part in re.split(r"([_\-.])", path.stem):
        for field, words in (("{algorithm}", nccl_tests.ALGORITHMS), ("{protocol}", nccl_tests.PROTOCOLS)):
            if not part.isdecimal() and nccl_tests.word(part, words) in words and field not in parts:
                parts.append(field)
                break
        else:
            parts.append(re.sub(r"\d+", "*", part))
    return str(path.parent / ("".join(parts) + path.suffix))


def joined(groups: dict[tuple, list[Path]]) -> dict[tuple, list[Path]]:
    """Join tables with equal headers, collectives and folders if algorithm and mapping are columns. The pattern is what the names have
    in common; one that would match files of other groups is not used, unless these name them exactly.
    """
    alike: dict[tuple, list[tuple]] = defaultdict(list)
    for key in groups:
        if key[0] == "csv" and "{" not in key[2] and {"algorithm", "mapping"} <= set(map(field_of, key[1])):
            alike[key[1], key[3], str(Path(key[2]).parent)].append(key)
    found = dict(groups)
    for keys in alike.values():
        names = [Path(key[2]).name for key in keys]
        start = os.path.commonprefix(names)
        end = os.path.commonprefix([name[len(start) :][::-1] for name in names])[::-1]
        mine = {path for key in keys for path in groups[key]}
        pattern = Path(keys[0][2]).parent / f"{start}*{end}"
        single = {Path(key[2]) for key in groups}
        if len(keys) > 1 and start and {*pattern.parent.glob(pattern.name)} <= mine | single:
            for key in keys:
                del found[key]
            found[keys[0][0], keys[0][1], str(pattern), keys[0][3]] = sorted(mine)
    return found


def machines_in(folder: Path, known: list[str]) -> list[str]:
    """Return the words of names of machines (thin of orfeo-thin) by which files of the folder differ."""
    words = [word for name in known for word in set(name.split("-")) if len(word) > 3]
    single = {word for word in words if words.count(word) == 1}
    said = []
    for path in folder.rglob("*"):
        if path.is_file():
            name = re.sub(r"(?<=[a-z])(?=[A-Z]{2})", "_", str(path.relative_to(folder))).lower()
            said.append(single & set(re.split(r"[^a-z]+", name)))
    return sorted({word for found in said if len(found) == 1 for word in found})
