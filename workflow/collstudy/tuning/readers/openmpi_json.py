"""Read Open MPI 6.0's JSON rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from collstudy.base.errors import allowed
from collstudy.tuning.readers.classic import openmpi_rule, with_sizes
from collstudy.tuning.readers.known import Known
from collstudy.tuning.readers.located import Located
from collstudy.tuning.rules import COLLTYPES
from collstudy.tuning.tuningfile import ALL, Fault, Faults, FileRule, Span, TuningFile, general_faults

IGNORED = "Open MPI ignores the whole file"


def read_openmpi_json(path: Path, found: Located, known: Known) -> TuningFile:
    """Read Open MPI 6.0's format like its own reader, which differs from its schema (tuned_dynamic_file_schema.json)."""
    rules: list[FileRule] = []
    faults = Faults()
    known = known if known.release >= (6,) else Known(known.catalogue, "6.0")
    if not isinstance(found["collectives"], dict):
        return TuningFile(
            path, "openmpi-json", (), (Fault(found.line, f"`collectives` is not an object: {IGNORED}"),), True
        )
    for collective, scopes in found["collectives"].items():
        line = scopes[0].line if scopes and isinstance(scopes, list) and isinstance(scopes[0], Located) else found.line
        if collective not in COLLTYPES:
            faults.add(line, f"{collective!r} is not a collective of Open MPI: {IGNORED}")
            continue
        if not isinstance(scopes, list) or not all(isinstance(scope, Located) for scope in scopes):
            faults.add(line, f"{collective}: not a list of communicator rules: {IGNORED}")
            continue
        if collective not in known.numbers:
            faults.add(line, f"coll/tuned has no algorithms of {collective}: its rules never apply")
        for scope in scopes:
            rules += _json_scope(collective, scope, known, faults)
    faults += general_faults(rules)
    lost = any(IGNORED in fault.text for fault in faults)
    return TuningFile(path, "openmpi-json", tuple(rules), tuple(faults), lost)


def _json_scope(collective: str, scope: Located, known: Known, faults: Faults) -> Iterator[FileRule]:
    ranks = _json_span(scope, "comm_size_min", "comm_size_max", collective, faults)
    if "comm_size_max" in scope and (ranks.high is None or ranks.high >= 2**31):
        faults.add(
            scope.line,
            f"{collective}: Open MPI keeps comm_size_max {scope['comm_size_max']} in 32 bits, as a negative number: "
            "these rules never apply; leave the key out",
        )
        return
    _unknown_keys(scope, {"comm_size_min", "comm_size_max", "comm_rank_distribution", "rules"}, faults)
    where = scope.get("comm_rank_distribution", "any")
    if not isinstance(where, str):
        faults.add(scope.line, f"{collective}: comm_rank_distribution {where!r} is not a string: {IGNORED}")
        return
    if where not in ("any", "one-per-node", "single-node"):
        faults.add(scope.line, f"{collective}: comm_rank_distribution {where!r} is taken as any")
    if not isinstance(scope.get("rules"), list) or not all(isinstance(rule, Located) for rule in scope["rules"]):
        faults.add(scope.line, f"{collective}: the list `rules` is missing: {IGNORED}")
        return
    for one in scope["rules"]:
        _unknown_keys(one, {"msg_size_min", "msg_size_max", "alg", "faninout", "seg_size", "reqs"}, faults)
        sizes = _json_span(one, "msg_size_min", "msg_size_max", collective, faults)
        values = [one.get(key, 0) for key in ("faninout", "seg_size", "reqs")]
        if not all(isinstance(value, int) for value in values):
            faults.add(one.line, f"{collective}: a parameter is not an integer: {IGNORED}")
            continue
        number = one.get("alg")
        if isinstance(number, str):
            word = {"bruck-k-fanout": "bruck", "ignore": None}.get(number, number)
            number = 0 if word is None else known.numbers.get(collective, {}).get(word, number)
        if not isinstance(number, int) or number not in (0, *known.numbers.get(collective, {}).values()):
            what = "no `alg`" if number is None else f"{number!r} is not an algorithm of Open MPI {known.version}"
            faults.add(one.line, f"{collective}: {what}: it ignores this rule")
            continue
        rule = openmpi_rule(one.line, collective, number, values, known, faults)
        spans = {"one-per-node": Span(1, 1), "single-node": ALL}
        rule = replace(
            rule, ranks=ranks, ppn=spans.get(where, ALL), nodes=Span(1, 1) if where == "single-node" else ALL
        )
        yield from with_sizes(rule, sizes, faults)


def _json_span(found: Located, low: str, high: str, collective: str, faults: Faults) -> Span:
    ends = []
    for key, otherwise in ((low, 0), (high, None)):
        value = found.get(key, otherwise)
        if isinstance(value, str) and value[:3] in ("inf", "Inf", "INF"):
            value = None
        elif value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            faults.add(found.line, f"{collective}: {key} {value!r} is not an integer: {IGNORED}")
            value = otherwise
        ends.append(value)
    return Span(ends[0] or 0, ends[1])


def _unknown_keys(found: Located, allowed_keys: set[str], faults: Faults) -> None:
    for key in found:
        if key not in allowed_keys:
            faults.add(found.line, f"unknown key {key!r}: Open MPI skips it{allowed(allowed_keys)}")
