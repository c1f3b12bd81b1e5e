"""Guess the column names of tables without a header from their content."""

from __future__ import annotations

from collstudy.sources.importing.strict import Refused, decimal
from collstudy.study.catalogue import Catalogue

#: Maximum number of rows to inspect.
LOOKED_AT = 5000


def number(text: str) -> float | None:
    """Convert a text to a number; None if it is not one."""
    try:
        return decimal(text, "")
    except Refused:
        return None


def has_numbers(text: str) -> bool:
    """Return whether the first lines of a text are rows of as many numbers, at least two in each."""
    rows = [line.split() for line in text.splitlines()[:20]]
    alike = len(rows) > 2 and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
    return alike and all(number(field) is not None for row in rows for field in row)


def header(records: list[list[str]], collective: str | None, catalogue: Catalogue) -> tuple[str, ...]:
    """Name the columns (fields if the values show them, otherwise `column 1`, ...); () for records that are not a table of times,
    or if most columns are unknown.

    Words are algorithms or mappings. The last numbers are the time, with its minimum and maximum if they enclose it. Of the integer
    columns before these, powers of two from below 64 to at least 64 times the smallest are sizes (otherwise the numbers from 1024
    on that are larger than all in other columns), numbers from 2 on are process counts, and numbers from 0 to 15 are algorithm
    numbers. A single column has the times of a known collective.
    """
    records = [[field.strip() for field in row] for row in records[:LOOKED_AT]]
    if len(records) < 2 or any(len(row) != len(records[0]) for row in records):
        return ()
    if len(records[0]) == 1:
        timed = collective and all((number(row[0]) or 0) > 0 for row in records)
        return ("latency_us",) if timed else ()
    names = [f"column {index + 1}" for index in range(len(records[0]))]
    columns = [[row[index] for row in records] for index in range(len(names))]
    numbers: dict[int, list[float]] = {}
    for index, values in enumerate(columns):
        found = [value for value in map(number, values) if value is not None]
        if len(found) == len(values):
            numbers[index] = found
        elif all(value.lower().removeprefix("by") in catalogue.mappings for value in values):
            names[index] = "mapping"
        elif not found and "algorithm" not in names:
            names[index] = "algorithm"
    whole = [index for index, values in numbers.items() if all(value == int(value) for value in values)]
    times = _times(numbers, whole)
    if not times:
        return ()
    for index, name in zip(times, ("latency_us", "min_latency_us", "max_latency_us"), strict=False):
        names[index] = name
    before = [index for index in whole if index not in times]
    _name_whole(names, before, numbers)
    known = sum(not name.startswith("column ") for name in names)
    told = collective == "barrier" or {"processes", "size_bytes"} & {*names}
    return tuple(names) if told and 2 * known >= len(names) else ()


def _times(numbers: dict[int, list[float]], whole: list[int]) -> list[int]:
    """Return the column of times, or three columns if the second and third enclose the first; with integers only, the last column."""
    broken = [index for index in numbers if index not in whole]
    if len(broken) == 3 and all(
        low <= mean <= high for mean, low, high in zip(*(numbers[index] for index in broken), strict=True)
    ):
        return broken
    return broken[:1] or ([max(numbers)] if len(numbers) > 1 else [])


def _name_whole(names: list[str], before: list[int], numbers: dict[int, list[float]]) -> None:
    """Name sizes, processes and the algorithm's number among the integer columns."""
    doubled = [
        index for index in before
        if min(numbers[index]) < 64 and max(numbers[index]) >= 64 * max(1, min(numbers[index]))
        and all(int(value) & (int(value) - 1) == 0 for value in numbers[index])
    ]  # fmt: skip
    large = [
        index for index in before
        if len(set(numbers[index])) > 2
        and min(numbers[index]) >= max(1024, *(max(numbers[other]) + 1 for other in before if other != index), 0)
    ]  # fmt: skip
    if large and not doubled:
        names[large[0]] = "size_bytes"
    if doubled:
        names[max(doubled, key=lambda index: max(numbers[index]))] = "size_bytes"
    for index in before:
        values = set(numbers[index])
        if names[index] == "size_bytes" or len(values) < 2 and "processes" in names:
            continue
        if min(values) >= 2 and "processes" not in names:
            names[index] = "processes"
        elif max(values) < 16 and "algorithm" not in names:
            names[index] = "algorithm"
