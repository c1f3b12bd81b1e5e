"""Read tuning files of MPI libraries, UCC and NCCL, also those that others wrote; the format is recognized by the content.

Each reader does what the library's own reader does (sources named at each) and notes what is wrong, with the line.
"""

from __future__ import annotations

import functools
import json
import json.scanner
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.study.catalogue import Catalogue
from collstudy.study.openmpi_numbers import entry_of, numbers_of
from collstudy.tuning.rules import COLLTYPES, INTEL, TOTAL_BYTES, WITHOUT_SIZE
from collstudy.tuning.tuningfile import ALL, Fault, FileRule, Span, TuningFile, general_faults

#: What can be read, by its name in `./study convert`.
FORMATS = {
    "openmpi": "rules of Open MPI's coll/tuned, version 1",
    "openmpi-2": "rules of Open MPI's coll/tuned, version 2",
    "openmpi-json": "JSON rules of Open MPI 6.0",
    "mpich": "selection tree of MPICH",
    "intel": "I_MPI_ADJUST variables of Intel MPI",
    "ucc": "UCC_TL_UCP_TUNE of UCC",
    "nccl": "CSV of NCCL's example tuner",
}
#: Open MPI's algorithms that use a parameter of a rule (coll_tuned_<collective>_decision.c, *_do_this).
SEGMENTED = {
    "bcast": ("chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial"),
    "reduce": ("chain", "pipeline", "binary", "binomial", "in-order_binary"),
    "allreduce": ("segmented_ring",),
    "gather": ("linear_sync",),
}
FANNING = {"bcast": ("chain",), "reduce": ("chain",)}
REQUESTING = {"alltoall": ("linear_sync",), "reduce": SEGMENTED["reduce"]}
#: In 6.0 also these take the fan-out (allgather's Bruck and reduce's k-nomial tree: as radix).
FANNING_6 = {"allgather": ("bruck", "direct-messaging"), "reduce": ("knomial",)}
#: The same algorithm in NCCL and in UCC's tl/ucp, where the catalogue has one.
NCCL = {"allreduce": {"ring": "ring"}, "allgather": {"ring": "ring"}, "reduce_scatter": {"ring": "ring"}}
UCC = {
    "allgather": {"ring": "ring", "neighbor_exchange": "neighbor", "bruck": "bruck", "sparbit": "sparbit"},
    "allreduce": {"ring": "ring"},
    "alltoall": {"pairwise": "pairwise", "bruck": "bruck"},
    "bcast": {"knomial": "knomial"},
}
#: NCCL's words (plugins/tuner/example/plugin.c); it takes unknown ones for allreduce, ring and simple.
NCCL_COLLECTIVES = {
    "broadcast": "bcast", "reduce": "reduce", "allgather": "allgather", "reducescatter": "reduce_scatter",
    "allreduce": "allreduce",
}  # fmt: skip
NCCL_ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
NCCL_PROTOCOLS = ("ll", "ll128", "simple")
#: Collectives of UCC whose sizes count the data of all ranks, as Open MPI's do (ucc_coll_utils.c, ucc_coll_args_msgsize).
#: Its reduce_scatter counts one rank's part, which no other format does.
UCC_TOTAL = TOTAL_BYTES
MEMORY = {"": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}


@dataclass(frozen=True)
class Known:
    """What a file is read with: the catalogue, and the Open MPI whose numbers and rules hold."""

    catalogue: Catalogue
    version: str

    @functools.cached_property
    def numbers(self) -> dict[str, dict[str, int]]:
        """Numbers of Open MPI's algorithms."""
        return numbers_of(self.version)

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(int(word) for word in re.findall(r"\d+", self.version)[:3])

    def named(self, collective: str, word: str) -> str | None:
        """The catalogue's name of an algorithm that Open MPI calls *word*."""
        return entry_of(self.catalogue, collective, word)


def read(path: Path, known: Known) -> TuningFile:
    """Read a file of any format. Raises StudyError with one message for what is no tuning file or was cut off."""
    text = _text(path)
    format_ = _format_of(path, text)
    readers: dict[str, Callable[[Path, str, Known], TuningFile]] = {
        "openmpi": read_classic, "json": _read_json, "intel": read_intel, "ucc": read_ucc, "nccl": read_nccl,
    }  # fmt: skip
    found = readers[format_](path, text, known)
    return replace(found, faults=tuple(sorted(found.faults, key=lambda fault: fault.line)))


def _text(path: Path) -> str:
    if path.is_dir():
        raise StudyError(f"{path}: is a folder; give one tuning file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}") from None
    if not content.strip():
        raise StudyError(f"{path}: is empty")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise StudyError(f"{path}: is not a text file; tuning files are: {', '.join(FORMATS.values())}")
    return text


def _format_of(path: Path, text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise StudyError(f"{path}: has comments only, no rule")
    if lines[0][0] in "{[":
        return "json"
    for word, name in ((r"\bI_MPI_ADJUST_\w+", "intel"), (r"\bUCC_\w*TUNE\s*=", "ucc")):
        if any(re.search(word, line) for line in lines):
            return name
    if re.match(r"[a-z_]+\s*,", lines[0]) and lines[0].count(",") >= 3:
        return "nccl"
    if re.match(r"rule-file-version-|\d", lines[0]):
        return "openmpi"
    raise StudyError(f"{path}: no tuning file that is known here" + allowed(FORMATS.values()))


# Open MPI, versions 1 and 2 (ompi/mca/coll/tuned/coll_tuned_dynamic_file.c)


class _CutOff(Exception):
    """The numbers ended; *what* was expected."""


class _Numbers:
    """The numbers of a classic file with their lines, as Open MPI takes them: one after the other, whatever the lines are.

    If every line has the numbers of one entry, as all known writers do, wrong counts are seen at the lines.
    """

    def __init__(self, text: str):
        self.lines = [
            (number, [_long(word) for word in re.findall(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)", line.split("#")[0])])
            for number, line in enumerate(text.splitlines(), 1)
        ]
        self.tokens = [(number, value, len(values)) for number, values in self.lines for value in values]
        self.by_lines = all(len(values) in (0, 1, 4, 5) for _, values in self.lines)
        self.position = 0

    def next(self, what: str) -> tuple[int, int]:
        """Line and value of the next number."""
        if self.position == len(self.tokens):
            raise _CutOff(what)
        number, value, _ = self.tokens[self.position]
        self.position += 1
        return number, value

    @property
    def left(self) -> int:
        """How many numbers are left."""
        return len(self.tokens) - self.position

    @property
    def at_rule(self) -> bool:
        """Whether the next number begins the line of a rule."""
        return self.left > 0 and self.tokens[self.position][2] >= 4

    @property
    def same_line(self) -> bool:
        """Whether the next number is in the line of the last one."""
        return self.left > 0 and self.tokens[self.position][0] == self.tokens[self.position - 1][0]

    @property
    def single(self) -> int:
        """The number of lines with one number before the next rule."""
        rest = self.tokens[self.position :]
        return next((i for i, token in enumerate(rest) if token[2] >= 4), len(rest))


def _long(word: str) -> int:
    """As C's `%li` reads it: hexadecimal after 0x, octal after 0."""
    return int(word, 8) if re.fullmatch(r"[-+]?0[0-7]+", word) else int(word, 0 if "x" in word.lower() else 10)


def read_classic(path: Path, text: str, known: Known) -> TuningFile:
    """Versions 1 and 2 of Open MPI's format."""
    faults: list[Fault] = []
    ignored = f"Open MPI {known.version} ignores the whole file"
    first = re.match(r"rule-file-version-(\d+)", text)
    version = int(first.group(1)) if first else 1
    reads_2 = known.release >= (5, 0, 7) or (4, 1, 8) <= known.release < (5,)
    stated = re.search(r"^\s*rule-file-version-", text, re.MULTILINE)
    lost = False
    if stated and not (first and reads_2):
        line = text[: stated.end()].count("\n") + 1
        why = "its readers of version 2 begin with 4.1.8 and 5.0.7" if first else "the version must be the first word"
        faults.append(Fault(line, f"{why}: the number in it is read as a count below 0; {ignored}"))
        version, lost = (2, True)
    body = re.sub(r"^(\s*)rule-file-version-\d+", r"\1", text, flags=re.MULTILINE)
    for number, line in enumerate(body.splitlines(), 1):
        if re.search(r"[A-Za-z]", re.sub(r"0[xX][0-9a-fA-F]+", "", line.split("#")[0])):
            faults.append(Fault(number, "text without # before it: Open MPI takes every number in it"))
    numbers = _Numbers(body)
    rules: list[FileRule] = []
    try:
        _classic_collectives(numbers, version, known, rules, faults)
    except _CutOff as cut:
        last = numbers.tokens[-1][0] if numbers.tokens else 1
        if not faults:
            raise StudyError(
                f"{path}, line {last}: cut off: the file ends where {cut} is to follow; {ignored}"
            ) from None
        faults.append(Fault(last, f"the file ends where {cut} is to follow; {ignored}"))
        lost = True
    if numbers.left:
        faults.append(Fault(numbers.tokens[numbers.position][0], "not read: no more collectives were announced"))
    lost = lost or any("ignores the whole file" in fault.text for fault in faults)
    misread = any(MISREAD in fault.text for fault in faults)
    return TuningFile(path, "openmpi-2" if version == 2 else "openmpi", tuple(rules), tuple(faults), lost, misread)


def _classic_collectives(
    numbers: _Numbers, version: int, known: Known, rules: list[FileRule], faults: list[Fault]
) -> None:
    ignored = f"Open MPI {known.version} ignores the whole file"
    line, count = numbers.next("the number of collectives")
    if count > len(COLLTYPES):
        faults.append(Fault(line, f"{count} collectives: there are {len(COLLTYPES)}; {ignored}"))
    seen: dict[str, int] = {}
    for i in range(count):
        if not numbers.left:
            faults.append(Fault(line, f"{count} collectives are announced, {i} follow: {ignored}"))
            return
        at, number = numbers.next("the number of a collective")
        if not 0 <= number < len(COLLTYPES):
            faults.append(Fault(at, f"{number} is no collective: they are 0 to {len(COLLTYPES) - 1}; {ignored}"))
            return
        collective = COLLTYPES[number]
        if collective not in known.numbers:
            faults.append(Fault(at, f"coll/tuned has no algorithms of {collective}: its rules never apply"))
        if collective in seen:
            faults.append(Fault(at, f"{collective} again: Open MPI forgets the rules from line {seen[collective]} on"))
            rules[:] = [rule for rule in rules if rule.collective != collective]
        seen[collective] = at
        _classic_counts(numbers, version, known, collective, rules, faults)


def _classic_counts(
    numbers: _Numbers, version: int, known: Known, collective: str, rules: list[FileRule], faults: list[Fault]
) -> None:
    line, announced = numbers.next("the number of communicator sizes")
    found: list[tuple[int, int, list[FileRule]]] = []
    while True:
        # A collective has four lines with one number before its first rule, a communicator size two.
        another = len(found) < announced
        if numbers.by_lines and found and numbers.single != 1:
            another = numbers.single == 2 or _cut_off(numbers, len(found) < announced, faults)
        if not another:
            break
        at, ranks = numbers.next("a communicator size")
        if ranks < 0:
            faults.append(Fault(at, f"communicator size {ranks}: Open MPI {known.version} ignores the whole file"))
        found.append((at, ranks, _classic_sizes(numbers, version, known, collective, faults)))
    if len(found) != announced:
        faults.append(
            Fault(line, f"{collective}: {announced} communicator sizes are announced, {len(found)} follow: {MISREAD}")
        )
    counts = [ranks for _, ranks, _ in found]
    for (at, ranks, _), before in zip(found[1:], counts, strict=False):
        if ranks <= before:
            faults.append(Fault(at, f"{collective}: {ranks} ranks after {before}: communicator sizes must ascend"))
    if counts and counts[0] > 2:
        faults.append(
            Fault(found[0][0], f"{collective}: no entry below {counts[0]} ranks: this one holds there too", note=True)
        )
    spans = _spans(counts)
    if known.release >= (6,) and len(counts) > 1:
        spans = _spans_of_6(counts)
        faults.append(Fault(line, f"{collective}: Open MPI {known.version} reads communicator sizes of this format one "
                                  "entry off (each ends where it should begin); its JSON format has no such fault"))  # fmt: skip
    for (at, ranks, own), span in zip(found, spans, strict=True):
        if span.empty:
            faults.append(Fault(at, f"{collective}, {ranks} ranks: never applies: another entry decides before"))
        rules += [replace(rule, ranks=span) for rule in own if not span.empty]


def _cut_off(numbers: _Numbers, lacking: bool, faults: list[Fault]) -> bool:
    """Whether the file ends in the middle: numbers are lacking at its end, and no count before was wrong."""
    return lacking and not numbers.left and not faults


#: What a wrong count means.
MISREAD = "Open MPI takes numbers whatever the lines are, so it misreads all that follows, or ignores the file"


def _spans(firsts: Sequence[int]) -> list[Span]:
    """Where entries hold that are read up to the first that begins above (coll_tuned_dynamic_rules.c of 4.1 and 5.0)."""
    return [
        Span(max(firsts[: i + 1]) if i else 0, firsts[i + 1] - 1 if i + 1 < len(firsts) else None)
        for i in range(len(firsts))
    ]


def _spans_of_6(counts: Sequence[int]) -> list[Span]:
    """Where 6.0 takes an entry of this format: from the number of the entry before up to one below its own."""
    return [Span(counts[i - 1] if i else 0, counts[i] - 1 if i + 1 < len(counts) else None) for i in range(len(counts))]


def _classic_sizes(
    numbers: _Numbers, version: int, known: Known, collective: str, faults: list[Fault]
) -> list[FileRule]:
    line, announced = numbers.next("the number of message sizes")
    found: list[tuple[int, list[int]]] = []
    while (
        numbers.at_rule or _cut_off(numbers, len(found) < announced, faults)
        if numbers.by_lines
        else len(found) < announced
    ):
        at, size = numbers.next("a message size")
        values = [size, *(numbers.next("an algorithm, a fan-out and a segment size")[1] for _ in range(3))]
        if numbers.same_line and numbers.by_lines or (version == 2 and numbers.same_line):
            requests = numbers.next("the requests")[1]
            if version == 2:
                values.append(requests)
            else:
                faults.append(Fault(at, f"five numbers, of which version 1 has four: {MISREAD}"))
        found.append((at, values))
    if len(found) != announced:
        faults.append(
            Fault(line, f"{collective}: {announced} message sizes are announced, {len(found)} follow: {MISREAD}")
        )
    sizes = [values[0] for _, values in found]
    if sizes and sizes[0] != 0:
        faults.append(
            Fault(
                found[0][0],
                f"{collective}: the first message size is {sizes[0]}, not 0: Open MPI {known.version} ignores the whole file",
            )
        )
    for (at, _), size, before in zip(found[1:], sizes[1:], sizes, strict=False):
        if size <= before:
            faults.append(Fault(at, f"{collective}: {size} bytes after {before}: message sizes must ascend"))
    rules = []
    for (at, values), span in zip(found, _spans(sizes), strict=True):
        rule = openmpi_rule(at, collective, values[1], values[2:], known, faults)
        if span.empty or (span.low > 0 and collective in (*WITHOUT_SIZE, "barrier")):
            why = "another rule decides before" if span.empty else f"Open MPI knows no size of {collective}"
            faults.append(Fault(at, f"{collective}, {values[0]} bytes: never applies: {why}"))
        else:
            total = collective in TOTAL_BYTES
            rules.append(replace(rule, sizes=ALL if collective in (*WITHOUT_SIZE, "barrier") else span, total=total))
    return rules


def openmpi_rule(
    line: int, collective: str, number: int, values: Sequence[int], known: Known, faults: list[Fault]
) -> FileRule:
    """A rule of coll/tuned's algorithm *number* with fan-out, segment size and perhaps requests, without its spans."""
    if number == 0:
        return FileRule(line, collective, "0", "default")
    names = known.numbers.get(collective, {})
    word = next((name for name, its in names.items() if its == number), None)
    if word is None:
        if names:
            faults.append(Fault(line, f"Open MPI {known.version} has no {collective} algorithm {number}; "
                                      f"it has 0 to {len(names)}: a call fails with MPI_ERR_ARG"))  # fmt: skip
        return FileRule(line, collective, str(number))
    fans = FANNING.get(collective, ()) + (FANNING_6.get(collective, ()) if known.release >= (6,) else ())
    parameters = {}
    given = zip(("fanout", "segment_bytes", "max_requests"), values, strict=False)
    users = {
        "fanout": fans,
        "segment_bytes": SEGMENTED.get(collective, ()),
        "max_requests": REQUESTING.get(collective, ()),
    }
    for name, value in given:
        if word in users[name]:
            if name == "fanout" and word == "chain" and value < 1:
                faults.append(
                    Fault(line, f"{collective} chain with fan-out 0: Open MPI takes 1, a pipeline", note=True)
                )
                value = 1
            # The catalogue's own values of these are not the library's.
            if value or (word, name) == ("segmented_ring", "segment_bytes"):
                parameters[name] = value
        elif value:
            faults.append(Fault(line, f"{name.replace('_', ' ')} {value}: Open MPI {known.version}'s {collective} "
                                      f"{word} ignores it"))  # fmt: skip
    return FileRule(
        line, collective, f"{number} {word}", known.named(collective, word), tuple(sorted(parameters.items()))
    )


# JSON: Open MPI 6.0 and MPICH


class Located(dict):
    """A JSON object with the line where it begins."""

    line: int = 0


class _LocatedDecoder(json.JSONDecoder):
    """Decodes objects to Located; Python's own scanner is the one that can be asked where an object begins."""

    def __init__(self) -> None:
        super().__init__()
        parse = self.parse_object

        def parse_object(where: tuple[str, int], *rest: Any) -> tuple[Located, int]:
            pairs, end = parse(where, *rest)
            found = Located(pairs)
            found.line = where[0].count("\n", 0, where[1]) + 1
            return found, end

        self.parse_object = parse_object
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def parse_json(path: Path, text: str) -> Any:
    """A JSON text with the lines of its objects. Raises StudyError naming the line of a fault."""
    try:
        return _LocatedDecoder().decode(text)
    except json.JSONDecodeError as error:
        end = " (cut off?)" if error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg else ""
        raise StudyError(f"{path}, line {error.lineno}: no valid JSON{end}: {error.msg}") from None
    except RecursionError:
        raise StudyError(f"{path}: no tuning file: too many levels") from None


def _read_json(path: Path, text: str, known: Known) -> TuningFile:
    found = parse_json(path, text)
    trees = found if isinstance(found, list) else [found]
    if isinstance(found, dict) and "collectives" in found:
        return read_openmpi_json(path, found, known)
    if trees and all(isinstance(tree, dict) and any("collective=" in key for key in tree) for tree in trees):
        return read_mpich(path, trees, known)
    raise StudyError(f"{path}: JSON, but neither rules of Open MPI 6.0 nor a selection tree of MPICH")


def read_openmpi_json(path: Path, found: Located, known: Known) -> TuningFile:
    """Open MPI 6.0's format, as its reader takes it, which differs from its schema (tuned_dynamic_file_schema.json)."""
    rules: list[FileRule] = []
    faults: list[Fault] = []
    known = known if known.release >= (6,) else Known(known.catalogue, "6.0")
    ignored = "Open MPI ignores the whole file"
    if not isinstance(found["collectives"], dict):
        return TuningFile(
            path, "openmpi-json", (), (Fault(found.line, f"`collectives` is no object: {ignored}"),), True
        )
    for collective, scopes in found["collectives"].items():
        line = scopes[0].line if scopes and isinstance(scopes, list) and isinstance(scopes[0], Located) else found.line
        if collective not in COLLTYPES:
            faults.append(Fault(line, f"{collective!r} is no collective of Open MPI: {ignored}"))
            continue
        if not isinstance(scopes, list) or not all(isinstance(scope, Located) for scope in scopes):
            faults.append(Fault(line, f"{collective}: not a list of communicator rules: {ignored}"))
            continue
        if collective not in known.numbers:
            faults.append(Fault(line, f"coll/tuned has no algorithms of {collective}: its rules never apply"))
        for scope in scopes:
            rules += _json_scope(collective, scope, known, faults)
    faults += general_faults(rules)
    lost = any(ignored in fault.text for fault in faults)
    return TuningFile(path, "openmpi-json", tuple(rules), tuple(faults), lost)


def _json_scope(collective: str, scope: Located, known: Known, faults: list[Fault]) -> Iterator[FileRule]:
    ignored = "Open MPI ignores the whole file"
    ranks = _json_span(scope, "comm_size_min", "comm_size_max", collective, faults)
    if "comm_size_max" in scope and (ranks.high is None or ranks.high >= 2**31):
        faults.append(
            Fault(
                scope.line,
                f"{collective}: Open MPI keeps comm_size_max {scope['comm_size_max']} in 32 bits, as a number below 0: "
                "these rules never apply; leave the key out",
            )
        )
        return
    _unknown_keys(scope, {"comm_size_min", "comm_size_max", "comm_rank_distribution", "rules"}, faults)
    where = scope.get("comm_rank_distribution", "any")
    if where not in ("any", "one-per-node", "single-node"):
        faults.append(Fault(scope.line, f"{collective}: comm_rank_distribution {where!r} is taken as any"))
    if not isinstance(scope.get("rules"), list) or not all(isinstance(rule, Located) for rule in scope["rules"]):
        faults.append(Fault(scope.line, f"{collective}: no list `rules`: {ignored}"))
        return
    for one in scope["rules"]:
        _unknown_keys(one, {"msg_size_min", "msg_size_max", "alg", "faninout", "seg_size", "reqs"}, faults)
        sizes = _json_span(one, "msg_size_min", "msg_size_max", collective, faults)
        values = [one.get(key, 0) for key in ("faninout", "seg_size", "reqs")]
        if not all(isinstance(value, int) for value in values):
            faults.append(Fault(one.line, f"{collective}: a parameter is no whole number: {ignored}"))
            continue
        number = one.get("alg")
        if isinstance(number, str):
            word = {"bruck-k-fanout": "bruck", "ignore": None}.get(number, number)
            number = 0 if word is None else known.numbers.get(collective, {}).get(word, number)
        if not isinstance(number, int) or number not in (0, *known.numbers.get(collective, {}).values()):
            what = "no `alg`" if number is None else f"{number!r} is no algorithm of Open MPI {known.version}"
            faults.append(Fault(one.line, f"{collective}: {what}: it ignores this rule"))
            continue
        rule = openmpi_rule(one.line, collective, number, values, known, faults)
        spans = {"one-per-node": Span(1, 1), "single-node": ALL}
        yield replace(
            rule, ranks=ranks, sizes=sizes, total=collective in TOTAL_BYTES, ppn=spans.get(where, ALL),
            nodes=Span(1, 1) if where == "single-node" else ALL,
        )  # fmt: skip


def _json_span(found: Located, low: str, high: str, collective: str, faults: list[Fault]) -> Span:
    ends = []
    for key, otherwise in ((low, 0), (high, None)):
        value = found.get(key, otherwise)
        if isinstance(value, str) and value[:3] in ("inf", "Inf", "INF"):
            value = None
        elif value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            faults.append(
                Fault(found.line, f"{collective}: {key} {value!r} is no whole number: Open MPI ignores the whole file")
            )
            value = otherwise
        ends.append(value)
    return Span(ends[0] or 0, ends[1])


def _unknown_keys(found: Located, allowed_keys: set[str], faults: list[Fault]) -> None:
    for key in found:
        if key not in allowed_keys:
            faults.append(
                Fault(found.line, f"Open MPI's reader has no key {key!r} and skips it{allowed(allowed_keys)}")
            )


# MPICH (src/mpi/coll/src/csel.c)


def read_mpich(path: Path, trees: list[Located], known: Known) -> TuningFile:
    """Selection trees: of algorithms, of the device (compositions), or both in a list as in the rules of a cell."""
    rules: list[FileRule] = []
    faults: list[Fault] = []
    for tree in trees:
        for key, below in tree.items():
            key = key.replace(" ", "")
            if not key.startswith("collective=") or not isinstance(below, Located):
                faults.append(Fault(tree.line, f"{key!r}: at the top are collective=NAME: MPICH stops"))
                continue
            start = FileRule(below.line, key.removeprefix("collective="), "")
            rules += _walk(below, start, known, faults)
    return TuningFile(path, "mpich", tuple(rules), (*faults, *general_faults(rules)))


def _walk(tree: Located, rule: FileRule, known: Known, faults: list[Fault]) -> Iterator[FileRule]:
    """The leaves below a tree, in the order in which MPICH tries them."""
    keys = [key.replace(" ", "") for key in tree]
    for key, below in zip(keys, tree.values(), strict=True):
        if not isinstance(below, Located):
            faults.append(Fault(tree.line, f"{key!r} has no object: MPICH stops"))
            return
        if key.startswith(("algorithm=", "composition=")):
            yield _leaf(replace(rule, line=below.line), key.partition("=")[2], below, known)
            return
        if key == "comm_type=inter":
            continue  # collectives between two groups of ranks are not studied here
        name, _, value = key.partition("=")
        try:
            # What is left after `yes` has no condition of its own.
            narrowed = rule if value == "no" and f"{name}=yes" in keys[: keys.index(key)] else _narrowed(rule, key)
        except ValueError:
            faults.append(Fault(below.line, f"MPICH knows no condition {key!r} and stops"))
            continue
        if not narrowed.sizes.empty and not narrowed.ranks.empty:
            yield from _walk(below, narrowed, known, faults)
    complete = {"yes", "no"} <= {key.partition("=")[2] for key in keys} or not keys
    if keys and not keys[-1].endswith("any") and not keys[-1].startswith("comm_type=") and not complete:
        faults.append(
            Fault(tree.line, f"{rule.collective}: no `any` after {keys[-1]}: MPICH has no algorithm there and stops")
        )


def _narrowed(rule: FileRule, key: str) -> FileRule:
    """The rule with one condition more. Raises ValueError for one that MPICH does not have."""
    if key.endswith("any"):
        return rule
    limit = re.fullmatch(r"(comm_size|avg_msg_size|total_msg_size|comm_avg_ppn)(<=?)(\d+)", key)
    if limit:
        name, sign, number = limit.groups()
        high = int(number) - (sign == "<")
        if name == "comm_size":
            return replace(rule, ranks=_at_most(rule.ranks, high))
        if name == "comm_avg_ppn":
            return replace(rule, ppn=_at_most(rule.ppn, high))
        total = name == "total_msg_size"
        if rule.sizes == ALL or rule.total == total:
            return replace(rule, sizes=_at_most(rule.sizes, high), total=total)
    elif not re.fullmatch(r"count(<=\d+|<pow2)|(comm_size|comm_type|comm_hierarchy|is_\w+)=\w+", key):
        raise ValueError(key)
    return rule if key == "comm_type=intra" else replace(rule, conditions=(*rule.conditions, key))


def _at_most(span: Span, high: int) -> Span:
    return Span(span.low, high if span.high is None else min(span.high, high))


def _leaf(rule: FileRule, word: str, below: Located, known: Known) -> FileRule:
    given = dict(key.replace(" ", "").partition("=")[::2] for key in below)
    named = word.removeprefix(f"MPIR_{rule.collective.capitalize()}_intra_")
    for name, entry in known.catalogue.algorithms.get(rule.collective, {}).items():
        settings = entry.get("mpich", {})
        if settings.get("algorithm") != named:
            continue
        if "fanout" not in settings:
            return replace(rule, word=word, algorithm=name)
        if given.get("tree_type") == "kary" and given.get("k") == str(settings["fanout"]):
            segment = int(given.get("chunk_size", "0"))
            return replace(rule, word=word, algorithm=name, parameters=(("segment_bytes", segment),) if segment else ())
    return replace(rule, word=" ".join([word, *(f"{key}={value}" for key, value in given.items())]))


# Intel MPI, UCC, NCCL


def read_intel(path: Path, text: str, known: Known) -> TuningFile:
    """`I_MPI_ADJUST_<OP>=<number>[:<sizes>[@<ranks>]][;...]`, as in a shell or as arguments of mpirun."""
    rules: list[FileRule] = []
    faults: list[Fault] = []
    for line, words in enumerate(text.splitlines(), 1):
        if words.lstrip().startswith("#"):
            continue
        for name, value in re.findall(r"I_MPI_ADJUST_(\w+)[=\s]+('[^']*'|\"[^\"]*\"|[^\s'\"]\S*|['\"].*)", words):
            if value[0] in "'\"" and (len(value) == 1 or value[-1] != value[0]):
                raise StudyError(f"{path}, line {line}: cut off: no closing {value[0]}")
            collective = name.lower()
            if collective not in known.catalogue.algorithms:
                faults.append(
                    Fault(line, f"I_MPI_ADJUST_{name}: no collective that is known here", note=name != name.upper())
                )
                continue
            for part in value.strip("'\"").split(";"):
                rules += _intel_part(line, collective, part.strip(), known, faults)
    return TuningFile(path, "intel", tuple(rules), (*faults, *general_faults(rules)))


def _intel_part(line: int, collective: str, part: str, known: Known, faults: list[Fault]) -> Iterator[FileRule]:
    number, _, conditions = part.partition(":")
    spans = [re.fullmatch(r"(\d+)(?:-(\d+))?(?:@(\d+)(?:-(\d+))?)?", one) for one in conditions.split(",")]
    if not number.isdecimal() or (conditions and None in spans):
        faults.append(Fault(line, f"{collective}: {part!r} is not <number>:<first>-<last>@<first>-<last>"))
        return
    for span in spans if conditions else [None]:
        low, high, first, last = (None if not x else int(x) for x in span.groups()) if span else (None,) * 4
        yield FileRule(
            line, collective, number, _intel_name(collective, number, known),
            sizes=_intel_span(low, high), ranks=_intel_span(first, last),
        )  # fmt: skip


def _intel_span(low: int | None, high: int | None) -> Span:
    """Intel writes 2147483647 for no end."""
    if low is None:
        return ALL
    high = low if high is None else high
    return Span(low, None if high >= 2**31 - 1 else high)


def _intel_name(collective: str, number: str, known: Known) -> str | None:
    own = {
        name: entry["impi"]["algorithm"]
        for name, entry in known.catalogue.algorithms[collective].items()
        if "impi" in entry
    }
    same = {name: str(value) for name, value in INTEL.get(collective, {}).items()} | own
    return next((name for name, value in same.items() if value == number), None)


def read_ucc(path: Path, text: str, known: Known) -> TuningFile:
    """`UCC_TL_UCP_TUNE=<collectives>:<sizes>:[<ranks>]:@<algorithm>:<score>#...` (src/coll_score/ucc_coll_score.c)."""
    rules: list[FileRule] = []
    faults: list[Fault] = []
    for line, words in enumerate(text.splitlines(), 1):
        found = re.search(r"UCC_\w*TUNE\s*=\s*(.*)", words)
        if not found or words.lstrip().startswith("#"):
            continue
        for token in found.group(1).strip().strip("'\"").split("#"):
            rules += _ucc_token(line, token, known, faults)
    return TuningFile(path, "ucc", tuple(rules), (*faults, *general_faults(rules)))


def _ucc_token(line: int, token: str, known: Known, faults: list[Fault]) -> Iterator[FileRule]:
    collectives, sizes, ranks, word = [], [ALL], [ALL], ""
    conditions = []
    for field in token.split(":"):
        bounds = [one.split("-") for one in field.strip("[]").split(",")]
        if field.startswith("@"):
            word = field[1:]
        elif field.lower() == "inf" or field.isdecimal():
            if field == "0":
                conditions.append("score 0")
        elif field.lower().split(",")[0] in ("host", "cuda", "cuda_managed", "rocm", "rocm_managed"):
            conditions.append(f"memory {field}")
        elif field.startswith("[") and field.endswith("]") and all(_is_bounds(one) for one in bounds):
            ranks = [Span(int(one[0]), _end(one[-1])) for one in bounds]
        elif all(len(one) == 2 and _memory(one[0]) is not None and _memory(one[1]) is not None for one in bounds):
            sizes = [
                Span(int(_memory(a) or 0), None if b.lower() == "inf" else int(_memory(b) or 0)) for a, b in bounds
            ]
        elif all(re.fullmatch(r"[a-z_]+", name) for name in field.lower().split(",")):
            collectives = field.lower().split(",")
        else:
            faults.append(Fault(line, f"{token!r}: UCC does not understand {field!r} and ignores the variable"))
            return
    for collective in collectives:
        if collective not in known.catalogue.algorithms:
            faults.append(Fault(line, f"{token!r}: {collective} is no collective that is known here"))
            continue
        same = next((name for name, its in UCC.get(collective, {}).items() if its == word), None)
        if not word:
            same, word = "default", "scored"
        if collective == "reduce_scatter":
            conditions.append("sizes are one rank's part")
        for size in sizes:
            for span in ranks:
                yield FileRule(
                    line, collective, word, same, (), span, size, collective in UCC_TOTAL, conditions=tuple(conditions)
                )


def _is_bounds(one: list[str]) -> bool:
    return len(one) <= 2 and one[0].isdecimal() and (one[-1].isdecimal() or one[-1].lower() == "inf")


def _end(text: str) -> int | None:
    return None if text.lower() == "inf" else int(text)


def _memory(text: str) -> float | None:
    """UCC's sizes: 4k, 1m, inf; None for something else."""
    found = re.fullmatch(r"(\d+)([kmgb]{0,2})", text.lower())
    return float("inf") if text.lower() == "inf" else int(found[1]) * MEMORY.get(found[2], 1) if found else None


def read_nccl(path: Path, text: str, known: Known) -> TuningFile:
    """`colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]`."""
    rules: list[FileRule] = []
    faults: list[Fault] = []
    for line, words in enumerate(text.splitlines(), 1):
        if not words or words.startswith("#"):
            continue
        fields = [word.strip() for word in words.split(",")]
        if not 8 <= len(fields) <= 10:
            faults.append(Fault(line, f"{len(fields)} fields, 8 to 10 are allowed: NCCL's plugin ignores the line"))
            continue
        if not all(re.fullmatch(r"-?\d+", fields[i]) for i in (1, 2, *range(5, len(fields)))):
            faults.append(Fault(line, "a size, number or count is no whole number: NCCL's plugin takes 0"))
            continue
        for i, kinds, taken in (
            (0, NCCL_COLLECTIVES, "allreduce"),
            (3, NCCL_ALGORITHMS, "ring"),
            (4, NCCL_PROTOCOLS, "simple"),
        ):
            if fields[i] not in kinds:
                faults.append(Fault(line, f"{fields[i]!r}: NCCL's plugin takes {taken}{allowed(kinds)}"))
                fields[i] = taken
        collective = NCCL_COLLECTIVES[fields[0]]
        same = next((name for name, its in NCCL.get(collective, {}).items() if its == fields[3]), None)
        low, high, channels, nodes, ranks = (int(fields[i]) for i in (1, 2, 5, 6, 7))
        further = [
            f"{name}={value}"
            for name, value in zip(("numPipeOps", "regBuff"), fields[8:], strict=False)
            if value != "-1"
        ]
        rules.append(
            FileRule(
                line, collective, f"{fields[3]} {fields[4]}" + (f", {channels} channels" if channels >= 0 else ""), same, (),
                Span(ranks, ranks) if ranks >= 0 else ALL, Span(low, None if high >= 2**63 - 1 else high),
                # NCCL counts the larger of what a rank sends and receives (ncclFuncMaxSendRecvCount).
                collective == "allgather", Span(nodes, nodes) if nodes >= 0 else ALL, conditions=tuple(further),
            )
        )  # fmt: skip
    return TuningFile(path, "nccl", tuple(rules), (*faults, *general_faults(rules)))
