"""Propose fields that only the row number of a table gives: process counts and sizes, counted up by the script that ran the benchmark."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from collstudy.sources.importing.formats import csv_files, omb
from collstudy.sources.importing.strict import Problems, read_text
from collstudy.study.machines import Machine

#: Largest sizes of OSU's and Intel's benchmarks if none is given: of collectives, and of messages between two ranks.
LARGEST = (2**20, 2**22)
#: Smallest sizes: a byte, or an element of a reduction.
SMALLEST = (1, 2, 4, 8)
#: With fewer process counts, too much fits.
FEWEST = 4


@dataclass(frozen=True)
class Counted:
    """Values counted up from `first`: each is the one before plus `step`, or twice as large (step 0)."""

    first: int
    step: int

    def last(self, count: int) -> int:
        """Return the last of *count* values."""
        return self.first + self.step * (count - 1) if self.step else self.first * 2 ** (count - 1)

    def rule(self, every: int = 1, count: int | None = None) -> dict[str, int]:
        """Return the rule of `by_row` for values that change every *every* rows and start again after *count* values."""
        found = {"from": self.first} | ({"step": self.step} if self.step else {"factor": 2})
        return found | ({"every": every} if every > 1 else {}) | ({"count": count} if count else {})

    def words(self, counts: list[int], unit: str) -> str:
        """Return the values for tables with these numbers of values, such as "1 to 8 bytes (doubled)"."""
        last = " or ".join(str(self.last(count)) for count in sorted(set(counts)))
        return f"{self.first} to {last} {unit} ({f'by {self.step}' if self.step else 'doubled'})"


@dataclass(frozen=True)
class Table:
    """The rows of a file: their number, the texts of the columns of sizes and processes ([] without such a column), and the number of
    empty lines between them.
    """

    rows: int
    sizes: list[str]
    processes: list[str]
    gaps: int = 0


@dataclass(frozen=True)
class Proposal:
    """Rules of `by_row` by field, and what they assume, for the list of open questions."""

    rules: dict[str, dict[str, int]]
    assumed: str


def of_table(path: Path, header: tuple[str, ...], columns: dict[str, str], first: int) -> Table:
    """Return the rows of a CSV file from record *first* on."""
    records = [row for _, row in itertools.islice(csv_files.records(path), first, None)]
    texts: dict[str, list[str]] = {"size_bytes": [], "processes": []}
    for field in texts:
        if field in columns:
            at = header.index(columns[field])
            texts[field] = [row[at].strip() for row in records if len(row) == len(header)]
    gaps = sum(not line.strip() for line in read_text(path).strip().splitlines())
    return Table(len(records), texts["size_bytes"], texts["processes"], gaps)


def of_output(path: Path, collective: str) -> Table:
    """Return the rows of raw output of OSU Micro-Benchmarks, which may be several outputs."""
    rows = [row for _, row in omb.rows(path, {"path": str(path), "collective": collective}, Problems())]
    return Table(len(rows), [row["size_bytes"] for row in rows if "size_bytes" in row], [])


def numbers(values: Iterable[int]) -> str:
    """Return the range of some numbers, such as "21" or "20 to 21"."""
    found = sorted(set(values))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}" if found else ""


def propose(missing: set[str], tables: list[Table], machine: Machine | None, least: int = 1) -> Proposal | None:
    """Propose rules for the *missing* fields (of size_bytes and processes) if the numbers of rows of all *tables* fit exactly one
    way of counting; otherwise return None. Process counts, of which *least* is the smallest possible one, are only proposed for a known
    machine.
    """
    rows = [one.rows for one in tables]
    if not missing or not all(rows):
        return None
    found: list[Proposal | None] = []
    if missing == {"size_bytes"}:
        # Without a column of processes, each file has one number of processes.
        runs = [_run(one.processes) if one.processes else one.rows for one in tables]
        found = [_sizes(rows, runs)]
    elif missing == {"processes"}:
        found = [_processes(rows, _common(_period(one.sizes) if one.sizes else 1 for one in tables), machine)]
    else:
        blocks = [block for block in range(2, min(rows) // 2 + 1) if _of_sizes(block)]
        found = [_sizes(rows, rows), _processes(rows, 1, machine), *(_both(rows, block, machine) for block in blocks)]
    fitting = [one for one in found if one and one.rules.get("processes", {"from": least})["from"] >= least]
    if len(fitting) != 1:
        return None
    gaps = sum(one.gaps for one in tables)
    told = f"; {gaps} empty line{' between rows is' if gaps == 1 else 's between rows are'} not counted" if gaps else ""
    return Proposal(fitting[0].rules, fitting[0].assumed + told)


def _common(values: Iterable[int]) -> int:
    """Return the value that all have; 0 if they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else 0


def _run(texts: list[str]) -> int:
    """Return the length of the runs of equal texts; 0 if they differ."""
    return _common(len(list(of)) for _, of in itertools.groupby(texts))


def _period(texts: list[str]) -> int:
    """Return the number of texts after which all start again in the same order; 0 if they do not."""
    block = texts.index(texts[0], 1) if texts[0] in texts[1:] else len(texts)
    return block if all(text == texts[index % block] for index, text in enumerate(texts)) else 0


def _of_sizes(count: int) -> list[Counted]:
    """Return the sizes of a benchmark that measures *count* of them."""
    return [Counted(first, 0) for last in LARGEST for first in SMALLEST if first * 2 ** (count - 1) == last]


def _of_processes(count: int, machine: Machine | None) -> list[Counted]:
    """Return the process counts of a script that ends with all cores of the machine, or of some of its nodes."""
    if machine is None or count < FEWEST:
        return []
    cores, nodes = machine.cores_per_node, machine.nodes
    found = []
    for one in (Counted(2, 0), Counted(2, 1), Counted(2, 2), Counted(1, 0), Counted(1, 1)):
        last = one.last(count)
        whole = last % cores == 0 and last // cores <= nodes
        # Doubled counts end below a number of cores that is no power of two.
        if whole or (not one.step and last <= cores * nodes < 2 * last):
            found.append(one)
    return found


def _fitting(counts: list[int], of: Callable[[int], list[Counted]]) -> list[Counted]:
    """Return what fits these numbers of values."""
    return [one for one in of(counts[0]) if all(one in of(count) for count in set(counts))]


def _sizes(rows: list[int], runs: list[int]) -> Proposal | None:
    """Propose sizes for tables of *rows* rows, in which the number of processes changes after *runs* rows."""
    block = _common(runs)
    again = block if block and set(rows) != {block} else None
    found = _fitting(runs, _of_sizes) if again or runs == rows else []
    if not found:
        return None
    return Proposal(
        {"size_bytes": found[0].rule(count=again)}, _either(found, runs, "bytes") + ", again and again" * bool(again)
    )


def _processes(rows: list[int], block: int, machine: Machine | None) -> Proposal | None:
    """Propose process counts for tables of *rows* rows, each count for *block* successive rows."""
    counts = [count // block for count in rows] if block and not any(count % block for count in rows) else [0]
    found = _fitting(counts, lambda count: _of_processes(count, machine))
    if not found:
        return None
    every = f", each for {block} rows" if block > 1 else ""
    return Proposal({"processes": found[0].rule(every=block)}, _either(found, counts, "processes") + every)


def _both(rows: list[int], block: int, machine: Machine | None) -> Proposal | None:
    """Propose process counts, each for the *block* sizes of a benchmark."""
    sizes, processes = _sizes(rows, [block] * len(rows)), _processes(rows, block, machine)
    if not sizes or not processes:
        return None
    return Proposal(
        sizes.rules | processes.rules, f"{processes.assumed} of {sizes.assumed.removesuffix(', again and again')}"
    )


def _either(found: list[Counted], counts: list[int], unit: str) -> str:
    """Return the values that are proposed, and others that fit as well."""
    others = [f"or {one.words(counts, unit)}" for one in found[1:]]
    return ", ".join([found[0].words(counts, unit), *others])
