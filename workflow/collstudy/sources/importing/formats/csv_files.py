"""Read CSV files: a header, a mapping of columns, one row per measurement."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.sources.importing.files import fields_in
from collstudy.sources.importing.strict import Problems, listed, read_text
from collstudy.sources.importing.words import field_of

_NUMBER = re.compile(r"[-+.,\deE]+", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(\.\d{3})+(,\d*)?", re.ASCII)
_COMMENTS = ("#", "//", "%")
#: The first line of CSV files of spreadsheets in some languages.
_SEPARATOR = re.compile(r"\"?sep=([,;\t])\"?", re.IGNORECASE)
#: Number of lines in which a table begins.
TITLES = 20
#: Columns that a file may lack.
OPTIONAL = ("min_latency_us", "max_latency_us", "iterations", "nodes", "launch")


def reader(text: str) -> Any:
    """Return a reader of a CSV text; the header determines the separator: comma, semicolon, tab or blanks. Comment lines (#, //, %),
    a spreadsheet's `sep=;` and titles above the table become empty, except for a commented header (the next line has numbers).
    """
    lines = text.splitlines(keepends=True)
    told = [index for index, line in enumerate(lines) if line.strip() and not _comment(line)]
    given = _SEPARATOR.fullmatch(lines[told[0]].strip()) if told else None
    if given:
        lines[told.pop(0)] = "\n"
    for index in told[: _titles(lines, told)]:
        lines[index] = "\n"
    told = [index for index in told if lines[index].strip()]
    first = told[0] if told else 0
    before = [index for index in range(first) if lines[index].strip()]
    words = [len(lines[index].split()) for index in told[:2]]
    separator = given.group(1) if given else _separator(lines[first]) if told else ","
    if separator == " " and words[1:] == [1]:
        separator = ","  # a single column whose name has several words
    header = before[-1] if told and before and _names(lines[before[-1]], lines[first], separator) else first
    lines = ["\n" if _comment(line) and index != header else line for index, line in enumerate(lines)]
    if separator == " ":
        count = words[-1] if header == first and words else len(lines[first].split()) if told else 0
        names = _header(lines[header], separator, count) if lines else []
        lines = ["\t".join(line.removeprefix("#").split()) + "\n" for line in lines]
        if len(names) == count:
            lines[header] = "\t".join(names) + "\n"
    return csv.reader(lines, strict=True, delimiter="\t" if separator == " " else separator)


def _titles(lines: list[str], told: list[int]) -> int:
    """Return how many of the lines *told*, which are no comments, are above a header: the first line with at least two known names, or
    a comment with them, above a line with as many fields and numbers; 0 if the table begins before.
    """
    for at, (header, following) in enumerate(itertools.pairwise(told[:TITLES])):
        if _numbers(_fields(lines[header], _separator(lines[header]))) > 1:
            if not at or not _comment(lines[header - 1]):
                return 0
            header, following = header - 1, header
        separator = _separator(lines[header])
        row = _fields(lines[following].lstrip("# "), separator)
        names = _header(lines[header], separator, len(row))
        known = sum(field_of(name.strip()) is not None for name in names) >= 2
        if len(names) == len(row) and _numbers(row) and (known or not at):
            return at if known else 0
    return 0


def _numbers(fields: list[str]) -> int:
    return sum(_NUMBER.fullmatch(field.strip()) is not None for field in fields)


def _names(line: str, first: str, separator: str) -> bool:
    """Return whether a comment directly above the *first* row is its header; above a row with words, it has two known names."""
    row = _fields(first, separator)
    found = _header(line, separator, len(row))
    numbers, known = _numbers(row), sum(field_of(name) is not None for name in found)
    alike = len(found) == len(row) and numbers > 0
    return alike and (known >= 2 or (numbers == len(row) and (known or len(found) > 1)))


def _header(line: str, separator: str, count: int) -> list[str]:
    """Return the names in the header of *count* columns. Between blanks, names with single blanks have more of them between each other."""
    text = line.lstrip("# ")
    names, wide = _fields(text, separator), re.split(r"\s{2,}", text.strip())
    return wide if separator == " " and len(names) != count == len(wide) else names


def _comment(line: str) -> bool:
    return line.lstrip().startswith(_COMMENTS)


def _separator(line: str) -> str:
    """Return the most frequent separator of the header; blanks if there is no other."""
    found = max(",;\t", key=line.count)
    return found if line.count(found) or len(line.split()) < 2 else " "


def _fields(line: str, separator: str) -> list[str]:
    return line.split() if separator == " " else line.split(separator)


def rows(path: Path, entry: dict[str, Any], problems: Problems) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Yield line number and fields of each row, by the names in `columns`; a wide table gives a row for each non-empty column of
    `wide`. Rows with more or fewer fields than the header (of the file, or `header` of the entry), and those that `where` does not
    select, are counted as problems, and yielded as None. Files without rows are counted as problems.

    Raises StudyError for a file that is not text, a header with missing or duplicate columns, and unclosed quotes.
    """
    if without_rows(path, "header" in entry):
        problems.note("files without rows", path.name)
        return
    comma = entry.get("decimal") == "comma"
    header: list[str] = []
    found: dict[str, str] = {}
    wide: list[tuple[str, dict[str, str]]] = []
    where = {name: {*listed(of)} for name, of in entry.get("where", {}).items()}
    for line, fields in records(path):
        if not header:
            header = entry.get("header") or [name.strip() for name in fields]
            found = _columns(path, header, entry.get("columns", {}), problems)
            wide = times_of(entry, header)
            if "wide" in entry and not wide:
                raise StudyError(f"{path}: line 1: no column fits `wide`: {entry['wide']}{allowed(header)}")
            _columns(
                path,
                header,
                {", ".join(f"{key} {of}" for key, of in fields.items()): name for name, fields in wide},
                problems,
            )
            _columns(path, header, {f"`where`: {name}": name for name in where}, problems)
            if "header" not in entry:
                continue
        if len(fields) != len(header):
            problems.note(
                f"rows with {'fewer' if len(fields) < len(header) else 'more'} fields than the header",
                f"{path.name}, line {line}",
            )
            yield line, None
            continue
        texts = (_with_point(text.strip()) if comma else text.strip() for text in fields)
        row = dict(zip(header, texts, strict=True))
        if any(row[name] not in values for name, values in where.items()):
            problems.note("table rows that the study does not select (where)", f"{path.name}, line {line}")
            yield line, None
            continue
        fields_of_row = {field: row[name] for field, name in found.items()}
        if not wide:
            yield line, fields_of_row
        for name, of_column in wide:
            if row[name]:
                yield line, {**fields_of_row, **of_column, "latency_us": row[name]}


def without_rows(path: Path, bare: bool = False) -> bool:
    """Return whether a table is empty or has only a header; *bare* ones have no header."""
    return not any(itertools.islice(records(path), 0 if bare else 1, None))


def times_of(entry: dict[str, Any], header: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """Return the columns of times of a wide table, each with the fields that its name gives."""
    given = entry.get("wide", {})
    if isinstance(given, str):
        others = {name for of in entry.get("columns", {}).values() for name in listed(of)}
        return [(name, fields) for name in header if name not in others and (fields := fields_in(name, given))]
    return [(name, {field: str(value)}) for field, of in given.items() for name, value in of.items()]


def _with_point(text: str) -> str:
    """Return a number that has a decimal comma, and perhaps points between thousands, with a decimal point."""
    return (text.replace(".", "") if _THOUSANDS.fullmatch(text) else text).replace(",", ".")


def records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not empty, with its line number, without a header that is repeated (files that were joined).

    Raises StudyError for a record of several lines, unclosed quotes, and a second header with the columns in another order.
    """
    stream = reader(read_text(path))
    header: list[str] | None = None
    while True:
        line = stream.line_num + 1
        try:
            fields = next(stream)
        except StopIteration:
            return
        except csv.Error as error:
            reason = "unclosed quote" if "end of data" in str(error) else str(error)
            raise StudyError(f"{path}: line {line}: {reason}") from None
        if stream.line_num > line:
            raise StudyError(f"{path}: line {line}: a quoted field continues to line {stream.line_num}")
        if not any(text.strip() for text in fields):
            continue
        if header is None:
            header = [] if any(_NUMBER.fullmatch(text.strip()) for text in fields) else fields
        elif fields[0] in header and sorted(fields) == sorted(header):
            if fields != header:
                raise StudyError(
                    f"{path}: line {line}: a second header, whose columns have another order; split the file here"
                )
            continue
        yield line, fields


def _columns(path: Path, header: list[str], columns: dict[str, Any], problems: Problems) -> dict[str, str]:
    """Return the column name of each field in this file; if several names are given, the first that exists."""
    twice = [name for name, count in Counter(header).items() if count > 1 and name]
    if twice:
        raise StudyError(f"{path}: line 1: column {twice[0]!r} appears twice in the header")
    found = {}
    for name, wanted in columns.items():
        names = listed(wanted)
        here = [text for text in names if text in header]
        if here:
            found[name] = here[0]
        elif name in OPTIONAL:
            problems.note(f"files without the column {' or '.join(names)}", path.name)
        else:
            raise StudyError(f"{path}: line 1: no column {' or '.join(map(repr, names))} for {name}{allowed(header)}")
    return found
