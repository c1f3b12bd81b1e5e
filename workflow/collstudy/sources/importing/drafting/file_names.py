"""What the names of files and folders say about results: collective, algorithm, mapping, number of processes, machine."""

from __future__ import annotations

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from collstudy.sources.importing.formats import nccl_tests
from collstudy.sources.importing.words import algorithm_like, algorithm_named, collective_in, field_of
from collstudy.study.catalogue import Catalogue
from collstudy.study.names import POINT_TO_POINT
from collstudy.study.openmpi_numbers import USES

#: Endings of files that may be tables.
TABLES = (".csv", ".tsv", ".dat", ".txt", ".out", ".log")
#: Fields that a number in a name may be.
COUNTS = ("processes", "nodes", "processes_per_node", "size_bytes", *USES)
#: Words before a node, a socket or a core that is not a mapping: multi-node, ranks per socket.
NO_MAPPING = ("single", "multi", "one", "two", "per", "intra", "inter")
#: Mappings besides `node` that are not words of a count: a number behind them is one of ranks.
NOT_COUNTED = ("core", "socket", "numa")
#: Fields whose words say nothing of a number behind them: osu_bw_1, latency_64.
MEASURED = ("latency_us", "bandwidth_mb_s")
#: Words before the number of an algorithm.
ALGORITHM = ("alg", "algo", "algorithm")
#: Words before the number of a job, or of one of several equal runs.
RUNS = ("run", "rep", "repeat", "repetition", "launch", "trial", "iter", "job", "jobid", "slurm")
#: Numbers from 0 or 1 to at least this one are those of runs; Open MPI's algorithms have smaller ones.
LAST_RUN = 10
#: A word of a file's path: its depth, and its number within the name.
Place = tuple[int, int]
#: A date or a number.
_NUMBERS = re.compile(r"\d[\d_\-.:T ]*")
#: A date, and a time behind it.
_DATE = re.compile(
    r"(?<!\d)(20\d\d([-_.]?)[01]\d\2[0-3]\d|[0-3]\d([-_.])[01]\d\320\d\d)(?!\d)([-_.T ]+[0-2]\d[-_:.h]?[0-5]\d([-_:.m]?[0-5]\d)?(?!\d)s?)?"
)


def collective_of(folder: Path, path: Path, catalogue: Catalogue) -> str | None:
    """Return the collective that a file's name contains, or the folder nearest to it; None if there is none."""
    folders = [folder.resolve().name, *path.relative_to(folder).parts[:-1]]
    found = (collective_in(name, catalogue) for name in (path.name, *reversed(folders)))
    return next((name for name in found if name), None)


def numbers_of(folder: Path, paths: list[Path]) -> dict[Path, dict[Place, str]]:
    """Return the likely meaning of numbers without a word, by the values that they have in files with otherwise equal names: `nodes` and
    `processes`, if one is always the same multiple of the other, `run`, `fixed`, `digit` (`algorithm` beside numbers of ranks), or
    another one that `varies`.
    """
    found: dict[Path, dict[Place, str]] = {}
    alike: dict[tuple, dict[Path, list[list[str]]]] = defaultdict(dict)
    for path in paths:
        words = [_parts(name) for name in _names_of(folder, path)[0]]
        alike[tuple(re.sub(r"\d+", "#", text) for parts in words for text in [*parts, "/"])][path] = words
    for files in alike.values():
        runs = {place: "run" for place, of in _numbers_in([*files.values()], "r").items() if _are_runs(of)}
        found |= dict.fromkeys(files, _roles(_numbers_in([*files.values()])) | runs)
    for path, places in _ranks_by_node(folder, paths).items():
        found[path] = found[path] | dict.fromkeys(places, "processes")
    return found


def _numbers_in(files: list[list[list[str]]], letter: str = "") -> dict[Place, list[int]]:
    """Return the numbers that no word labels, behind a *letter*, at each place that all files have; a file is the parts of its names."""
    numbers = [
        {
            (depth, at): int(parts[at][len(letter) :])
            for depth, parts in enumerate(words)
            for at in range(0, len(parts), 2)
            if re.fullmatch(rf"{letter}\d+", parts[at], re.IGNORECASE) and not _labelled(parts[at], parts[at - 2] if at else "")
        }
        for words in files
    ]  # fmt: skip
    return {place: [of[place] for of in numbers] for place in sorted(set.intersection(*map(set, numbers)))}


def _are_runs(numbers: list[int]) -> bool:
    """Return whether numbers are counted from 0 or 1 without gaps, as those of runs."""
    return min(numbers) < 2 <= len(set(numbers)) == max(numbers) - min(numbers) + 1


def _ranks_by_node(folder: Path, paths: list[Path]) -> dict[Path, list[Place]]:
    """Return the places of numbers behind the mapping `node`, as chain_node_16 beside chain_core_16: ranks, not numbers of nodes."""
    alike: dict[tuple, list[tuple[Path, list[list[str]]]]] = defaultdict(list)
    for path in paths:
        words = [_parts(name) for name in _names_of(folder, path)[0]]
        plain = [["@" if part.lower() in ("node", *NOT_COUNTED) else part for part in parts] for parts in words]
        alike[tuple(re.sub(r"\d+", "#", "".join(parts)) for parts in plain)].append((path, words))
    found: dict[Path, list[Place]] = {}
    for files in alike.values():
        others = {(depth, at) for _, words in files for depth, parts in enumerate(words) for at, part in enumerate(parts)
                  if part.lower() in NOT_COUNTED}  # fmt: skip
        for path, words in files:
            found[path] = [
                (depth, at + 2) for depth, parts in enumerate(words) for at, part in enumerate(parts[:-2])
                if part.lower() == "node" and (depth, at) in others and parts[at + 2].isdecimal()
            ]  # fmt: skip
    return found


def _roles(values: dict[Place, list[int]]) -> dict[Place, str]:
    """Return the meaning of the numbers at each place of the names of some files."""
    varying = {place: of for place, of in values.items() if len(set(of)) > 1}
    roles = {place: "varies" if max(of) >= LAST_RUN else "digit" for place, of in varying.items()}
    for place, of in varying.items():
        if _are_runs(of) and max(of) >= LAST_RUN and len(varying) > 1:
            roles[place] = "run"
    for nodes, processes in itertools.permutations((place for place in varying if roles[place] != "run"), 2):
        ratios = {two / one if one else 0 for one, two in zip(varying[nodes], varying[processes], strict=True)}
        if len(ratios) == 1 and ratios.pop() > 1 and len(set(varying[nodes])) > 2:
            roles |= {nodes: "nodes", processes: "processes"}
    counts = [place for place, role in roles.items() if role in ("varies", "processes")]
    digits = [place for place, role in roles.items() if role == "digit"]
    if len(digits) == 2 and counts and _are_runs(varying[digits[1]]):
        roles[digits.pop()] = "run"
    roles |= {digits[0]: "algorithm"} if len(digits) == 1 and counts else {}
    return roles | {place: "fixed" for place in values.keys() - varying.keys() if counts}


def _labelled(text: str, before: str) -> bool:
    """Return whether the word before a number tells its meaning, or the number is that of a job."""
    told = before and (_count_of(before) or field_of(before))
    return _any_run(text, before) or before.lower() in ALGORITHM or bool(told and told not in MEASURED)


def _names_of(folder: Path, path: Path) -> tuple[list[str], str]:
    """Return the names of a path below the folder, the last one without its ending, and that ending."""
    within = path.relative_to(folder)
    ending = path.name[len(path.name.removesuffix(".gz").removesuffix(suffix_of(path.name))) :]
    return [*within.parts[:-1], within.name.removesuffix(ending)], ending


def pattern_of(
    folder: Path, path: Path, catalogue: Catalogue, header: tuple[str, ...] = (), collective: str | None = None,
    numbers: dict[Place, str] | None = None,
) -> str:  # fmt: skip
    """Return the file's path with {algorithm}, {mapping}, {processes}, {nodes}, ... in place of their values in the names of file and
    folders, unless *header* has a column for them, and * in place of dates and of numbers of jobs and runs. *numbers* is the
    file's part of numbers_of().
    """
    collective = collective or ""
    known = {field for name in header if (field := field_of(name))}
    known |= {"processes", "algorithm"} if collective in POINT_TO_POINT else set()
    names, ending = _names_of(folder, path)
    # In n2_ppn32 or 2n_64procs, n is a number of nodes.
    n_is_nodes = any(_counts_ranks(_parts(name)) for name in names)
    # Start with the file's own name: it is more specific than that of a folder.
    found = [
        _fields_in(name, collective, catalogue, known, n_is_nodes, {at: role for (of, at), role in (numbers or {}).items() if of == depth})
        for depth, name in reversed([*enumerate(names)])
    ]  # fmt: skip
    return str(folder.joinpath(*reversed(found))) + re.sub(r"\d+$", "*", ending)


def _counts_ranks(parts: list[str]) -> bool:
    """Return whether a word of a name other than n says that a number is one of ranks, also per node."""
    counts = ("processes", "processes_per_node")
    beside = zip(parts, parts[2:], strict=False)
    return any(
        field in counts and "n" not in (first.lower(), last.lower()) and (first or last)
        for first, field, last in map(_counted, parts)
    ) or any(number.isdecimal() and word != "n" and _count_of(word) in counts for word, number in beside)


def suffix_of(name: str) -> str:
    """Return the ending of the name of a table or of a job's output, without .gz; "" for any other."""
    suffix = Path(name.removesuffix(".gz")).suffix
    return suffix if suffix.lower() in TABLES or re.fullmatch(r"\.o\d+", suffix) else ""


def _parts(name: str) -> list[str]:
    """Split a name into words (even places) and what separates them; dates become *."""
    return re.split(r"([_\-. :=,])", _DATE.sub("*", name))


def _fields_in(
    name: str, collective: str, catalogue: Catalogue, known: set[str], n_is_nodes: bool, numbers: dict[int, str]
) -> str:
    """Replace the parts of a name that are values of a field by {field}; *known* collects the fields. With *n_is_nodes*, the names have
    another number of ranks. *numbers* has the meaning of numbers, by their place.
    """
    parts = _parts(name)
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
        before = parts[at - 2] if at >= 2 and at % 2 == 0 else ""
        if _any_run(text, before):
            text = re.sub(r"\d+", "*", text)
        else:
            first, field, last = _field_of(text, before, letter, collective, catalogue, known, numbers.get(at, ""))
            if field == "algorithm" and numbers.get(at) == field and named:
                field = "*"
            if n_is_nodes and "n" in (first.lower(), last.lower(), before.lower()):
                field = "nodes"
            if field == "*" or (field in known and at in numbers and numbers[at] != "fixed"):
                text = re.sub(r"\d+", "*", text)
            elif field and field not in known:
                known.add(field)
                text = f"{first}{{{field}}}{last}"
        result.append(text)
        at = until
    return re.sub(r"\*[_\-. *]*\*", "*", "".join(result))


def pattern_of_column(name: str, collective: str, catalogue: Catalogue, known: set[str]) -> str:
    """Return the name of a column of times with {algorithm}, {processes}, ... in place of their values; *known* are the fields of other
    columns. Beside a number of ranks, a number without a word is a size.
    """
    parts = _parts(name)
    numbers = [at for at in range(0, len(parts), 2) if parts[at].isdecimal()]
    unknown = [at for at in numbers if not _labelled(parts[at], parts[at - 2] if at else "")]
    counts = len(numbers) > len(unknown) or any(_counted(part)[1] for part in parts)
    sizes = dict.fromkeys(unknown, "size_bytes") if counts and "size_bytes" not in known else {}
    return _fields_in(name, collective, catalogue, {*known}, _counts_ranks(parts), sizes)


def _any_run(text: str, before: str) -> bool:
    """Return whether a word is the number of a job or of a repetition; *before* is the word before it."""
    if found := re.fullmatch(r"([a-z]*)(\d+)", text.lower()):
        word, number = found.groups()
        return (word or before.lower()) in RUNS or (not word and len(number) > 5 and int(number).bit_count() > 1)
    return False


def _field_of(
    text: str, before: str, letter: str, collective: str, catalogue: Catalogue, known: set[str], role: str
) -> tuple[str, str, str]:
    """Return the field that a word of a name stands for, and the parts of the word before and after the value; no field ("") if it
    stands for none.

    *before* is the word before it; *letter* stands for the collective before the number of an algorithm (b1); *role* is the meaning of
    a number (numbers_of()).
    """
    words = "|".join(filter(None, (re.escape(collective), letter, "broadcast", "alg", "algo", "algorithm", "a")))
    if collective and (found := re.fullmatch(rf"({words})(\d)", text, re.IGNORECASE)):
        return found.group(1), "algorithm", ""
    if text.isdecimal() and before:
        if before.lower() in ALGORITHM:
            return "", "algorithm", ""
        if role == "processes" and before.lower() == "node":
            return "", role, ""
        field = _count_of(before) or field_of(before)
        if field and field not in MEASURED:
            return "", field if field in COUNTS else "", ""
    kept = text[:2] * text.lower().startswith("by")
    if text.removeprefix(kept).lower() in catalogue.mappings and before.lower() not in NO_MAPPING:
        return kept, "mapping", ""
    if role in ("run", "fixed", "nodes", "processes", "size_bytes"):
        return "", {"run": "*", "fixed": ""}.get(role, role), ""
    if text.isdecimal():
        # If there is a column of processes, a single digit is the algorithm's number.
        numbered = ("processes" in known or role == "algorithm") and len(text) == 1 and collective and role != "varies"
        return "", "algorithm" if numbered else "processes", ""
    if _counted(text)[1]:
        return _counted(text)
    if collective and text != collective and algorithm_in(text, collective, catalogue):
        return "", "algorithm", ""
    return "", "", ""


def _counted(text: str) -> tuple[str, str, str]:
    """Return the field of a number with its unit (np64, 64procs, 2nodes, 4KiB, 2x64), and the parts before and after the value."""
    if re.fullmatch(r"\d+x\d+", text):
        return "", "processes", ""
    if re.fullmatch(r"\d+(K|M|[KM]?i?B)", text, re.IGNORECASE):
        return "", "size_bytes", ""
    if (found := re.fullmatch(r"([A-Za-z]+)(\d+)", text)) and (field := _count_of(found.group(1))):
        return found.group(1), field, ""
    if (found := re.fullmatch(r"(\d+)([A-Za-z]+)", text)) and (field := _count_of(found.group(2))):
        return "", field, found.group(2)
    return "", "", ""


def _count_of(word: str) -> str:
    """Return the count that a word beside a number stands for; "" if it stands for none."""
    if word in ("N", "node", "Node"):
        return "nodes"
    field = "processes" if word == "n" else field_of(word)
    return field if field in COUNTS and word.lower() not in ("length", "message", "msg") else ""


def told_by_names(pattern: str, paths: list[Path], names: list[dict[str, str]]) -> Iterator[str]:
    """Yield what is assumed about the numbers in the names of files with this pattern; *names* has the fields of each file."""
    for field in ("nodes", "processes"):
        counts = sorted({name[field] for name in names if field in name})
        if counts and not names_count(pattern, field) and all(text.isdecimal() for text in counts):
            yield f"whether {some(sorted(counts, key=int))} in the names are numbers of {field}"
    if "{size_bytes}" in pattern:
        yield f"whether {some(sorted({name['size_bytes'] for name in names}))} in the names are message sizes"
    # If tables of several algorithms were joined, * stands for words, too.
    distinct = {(*name.items(), _NUMBERS.sub("*", str(path))) for name, path in zip(names, paths, strict=True)}
    if "*" in pattern and len(distinct) < len(paths):
        numbers = "; ".join(map(some, _counts_in(pattern, paths)))
        yield (
            f"whether files whose names differ only in * ({numbers or 'a date, the number of a job or a run'}) are launches of the same "
            "cells" + "; if they are numbers of ranks or nodes, write {processes} or {nodes} for *" * bool(numbers)
        )


def _counts_in(pattern: str, paths: list[Path]) -> list[list[str]]:
    """Return the values of each * in the names of files that may be counts: numbers too short for dates and jobs, and not of runs."""
    expression = re.compile(
        ".*?".join(re.escape(part) for part in re.split(r"\{\w+\}", pattern)).replace(r"\*", "(.*?)")
    )
    values = [found.groups() for path in paths if (found := expression.fullmatch(str(path)))]
    columns = [sorted(set(of)) for of in zip(*values, strict=True)]
    short = [of for of in columns if len(of) > 1 and all(re.fullmatch(r"\d{1,4}", text) for text in of)]
    return [of for of in short if not _are_runs([int(text) for text in of])]


def names_count(pattern: str, field: str) -> bool:
    """Return whether a word beside {nodes} or {processes} in a pattern says that it is this count."""
    found = re.search(rf"([A-Za-z]*)[_\-. :=,]?\{{{field}\}}([A-Za-z]*)", pattern)
    # In n2 and 2n, n may be nodes, too.
    return found is not None and any(
        _count_of(word) and (word != "n" or "{nodes}" in pattern) for word in found.groups()
    )


def some(texts: list[str]) -> str:
    """Return the first texts and the last one."""
    return ", ".join(texts if len(texts) < 6 else [*texts[:3], "...", texts[-1]])


def algorithm_in(text: str, collective: str, catalogue: Catalogue) -> str | None:
    """Return the algorithm that a text names, or probably means; None if there is none."""
    return algorithm_named(text, collective, catalogue) or algorithm_like(text, collective, catalogue)


def nccl_pattern(folder: Path, path: Path) -> str:
    """Return the file's path with {algorithm} and {protocol} in place of NCCL's words, first those of its own name, then those of the
    folders nearest to it; ranks and nodes are in the file.
    """
    known: set[str] = set()
    name = _nccl_words(path.stem, known, numbers="*") + re.sub(r"\d+", "*", path.suffix)
    folders = [_nccl_words(part, known) for part in reversed(path.relative_to(folder).parts[:-1])]
    return str(folder.joinpath(*reversed(folders), name))


def _nccl_words(name: str, known: set[str], numbers: str = "") -> str:
    """Replace NCCL's words in a name by their fields, which *known* collects, and numbers in other words by *numbers*."""
    parts = []
    for part in re.split(r"([_\-., =])", name):
        for field, words in (("{algorithm}", nccl_tests.ALGORITHMS), ("{protocol}", nccl_tests.PROTOCOLS)):
            if not part.isdecimal() and nccl_tests.word(part, words) in words and field not in known:
                known.add(field)
                parts.append(field)
                break
        else:
            parts.append(re.sub(r"\d+", numbers, part) if numbers else part)
    return "".join(parts)


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


def machines_in(folder: Path, known: list[str]) -> dict[str, str]:
    """Return the word of a machine's name (thin of orfeo-thin) that a file's name has, by path, for files with one such word."""
    words = [word for name in known for word in set(name.split("-")) if len(word) > 3]
    single = {word for word in words if words.count(word) == 1}
    said = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = re.sub(r"(?<=[a-z])(?=[A-Z]{2})", "_", str(path.relative_to(folder))).lower()
            found = single & set(re.split(r"[^a-z]+", name))
            said |= {str(path): found.pop()} if len(found) == 1 else {}
    return said
