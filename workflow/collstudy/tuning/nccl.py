"""The CSV of NCCL's example tuner (plugins/tuner/example in its sources): each line has one number of ranks and one of nodes.

Sizes are the larger of the bytes that a rank sends and receives (ncclFuncMaxSendRecvCount).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from collstudy.study.catalogue import Catalogue
from collstudy.tuning.rules import TOTAL_BYTES, Entry, Placement, Rule, entries, first_byte, selected_rules
from collstudy.tuning.tuningfile import Faults
from collstudy.tuning.writers import settings_of

#: NCCL's words -> this project's (plugins/tuner/example/plugin.c); it reads unknown words as allreduce, ring and simple.
COLLECTIVES = {
    "broadcast": "bcast", "reduce": "reduce", "allgather": "allgather", "reducescatter": "reduce_scatter",
    "allreduce": "allreduce",
}  # fmt: skip
#: In the order of NCCL's numbers. The catalogue uses the same names.
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")
#: A range with more rank counts than this is not written out.
MOST_LINES = 256
#: Width of comments: the plugin reads lines of at most 255 bytes and would take the rest of a longer comment for another line.
WIDTH = 120
CHANNELS = (
    "Channels are -1: NCCL's choice by the plugin's documentation. The published plugin sets 1 there (also for calls without "
    "a line); set `*nChannels = 0` in pluginGetCollInfo before building it."
)


def has(catalogue: Catalogue, collective: str, algorithm: str, parameters: dict) -> bool:
    """Return whether NCCL's tuner can select the algorithm with these parameters."""
    known = collective in COLLECTIVES.values()
    return known and catalogue.settings(collective, algorithm, parameters, "nccl") is not None


def _line(
    collective: str, rule: Rule, after: Rule | None, count: int, nodes: int, ranks: int, catalogue: Catalogue
) -> str:
    """Return the line for a rule, up to the rule after it, with limits for *count* ranks; -1 stands for any nodes or ranks."""
    word = next(theirs for theirs, ours in COLLECTIVES.items() if ours == collective)
    settings = settings_of(catalogue, collective, rule, "nccl")
    high = 2**64 if after is None else first_byte(collective, after, count)
    said = (word, first_byte(collective, rule, count), high - 1, settings["algorithm"], settings["protocol"])
    return ",".join(map(str, (*said, -1, nodes, ranks)))


def _text(header: Iterable[str], lines: Iterable[str]) -> str:
    comments = [line for text in (*header, CHANNELS) for line in textwrap.wrap(text, WIDTH)]
    names = "colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks"
    return "".join(f"{line}\n" for line in (*(f"# {text}" for text in (*comments, names)), *lines))


def study_csv(found: list[Placement], study: dict[str, Any], catalogue: Catalogue, header: list[str]) -> str:
    """Return the lines for a study's placements of one mapping, only for numbers of ranks of its grid."""
    lines = []
    for placement in found:
        for collective, shapes in placement.grid(study).items():
            for ranks, nodes in shapes:
                rules = selected_rules(placement.tables[collective], ranks)
                for rule, after in zip(rules, [*rules[1:], None], strict=True):
                    if rule.algorithm != "default":
                        lines.append(_line(collective, rule, after, ranks, nodes, ranks, catalogue))
    return _text(header, lines)


def converted_csv(placement: Placement, catalogue: Catalogue, header: list[str]) -> str:
    """Return a converted file, for any number of nodes; without a protocol, the catalogue's is used, the one for large messages."""
    lines = []
    for collective, table in placement.tables.items():
        for entry in entries(table):
            count, _, rule, after = entry
            if rule.algorithm != "default":
                for ranks in ranks_of(collective, entry):
                    lines.append(_line(collective, rule, after, max(ranks, count), -1, ranks, catalogue))
    return _text(header, lines)


def ranks_of(collective: str, entry: Entry) -> list[int]:
    """Return the rank counts of the lines for an entry: [-1] for all; [] if there would be too many lines."""
    count, last, rule, after = entry
    by_rank = collective in TOTAL_BYTES and any(one and one.size and one.total is None for one in (rule, after))
    if last is None and count <= 2 and not by_rank:
        return [-1]
    return [] if last is None or last - count >= MOST_LINES else list(range(count, last + 1))


def lost(placement: Placement) -> Faults:
    """Return what a converted file cannot express."""
    found = Faults()
    found.add(0, "the old file has no protocols of NCCL: `simple` is written, the one for large messages")
    found.add(0, CHANNELS)
    for collective, table in placement.tables.items():
        for entry in entries(table):
            count, last, rule, _ = entry
            if rule.algorithm != "default" and not ranks_of(collective, entry):
                until = "on" if last is None else f"to {last}"
                found.add(
                    0,
                    f"{collective} {rule.text} from {count} ranks {until} not written: "
                    "NCCL's tuner needs one line per rank count, and this rule covers too many",
                )
    return found
