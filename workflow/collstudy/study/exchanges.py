"""The steps of algorithms in which many ranks send at once (doubling, halving, rings), and of composite algorithms.

They follow Open MPI's ompi/mca/coll/base (4.1 and 5.0); docs/files.md describes the table written from them. Algorithms
of the same name in other libraries send the same messages, except for a few elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Step:
    """Messages sent at the same time, at most one from each rank and at most one to each; or a call of another algorithm.

    Attributes:
        partner: who sends to whom. `next`: every rank to the next one, the last to rank 0. `neighbour`: each rank
            exchanges with the next and the previous rank in turn. `bit`: participating ranks, numbered from 0, exchange with
            the rank whose number differs in the bit `distance`. `stay`: each rank that does not participate sends to its
            representative; `aside`: the reverse; `both`: the two exchange. `call`: calls another algorithm.
        distance: between the two ranks, or between their numbers.
        share: size of each message as a fraction of the benchmark's message size.
        combines: the receiver combines the received data with its own (reduction).
        times: number of consecutive repetitions.
        first, last, every: numbers of the senders (`bit`), if not all send.
        stays: `even`, `odd`: of each of the first `pairs` pairs of neighbours, this one participates; `low`: the last
            `pairs` ranks do not participate, and rank - (P - `pairs`) represents each.
        call: collective and algorithm to call.
        from_bytes, to_bytes: benchmark sizes (B) for which the algorithm has this step, excluding `to_bytes`.
    """

    partner: str
    distance: int | None = None
    share: float | None = None
    combines: bool = False
    times: int = 1
    first: int | None = None
    last: int | None = None
    every: int | None = None
    stays: str = ""
    pairs: int = 0
    call: tuple[str, str] = ("", "")
    from_bytes: float = 0
    to_bytes: float | None = None


Steps = list[Step]
Parameters = Mapping[str, int]


def _power(p: int) -> int:
    return 1 << (p.bit_length() - 1)


def _bits(p: int) -> list[int]:
    return [1 << k for k in range(p.bit_length() - 1)]


def _folded(p: int, stays: str, before: Steps, inner: Steps, after: Steps) -> Steps:
    """Wrap *inner*, for a power of two of ranks: surplus ranks hand over their data in *before* and get the result in *after*."""
    pairs = p - _power(p)
    return [replace(step, stays=stays, pairs=pairs) for step in [*before, *inner, *after]] if pairs else inner


def _around(p: int, share: float, combines: bool = False) -> Steps:
    return [Step("next", 1, share, combines, p - 1)]


def _halve(p: int, outwards: bool) -> Steps:
    """Exchange and combine halves, then quarters, and so on; *outwards*: start with the nearest rank."""
    bits = _bits(p)
    distances = bits if outwards else bits[::-1]
    return [Step("bit", distance, 0.5**k, True) for k, distance in enumerate(distances, 1)]


def _sizes(steps: Steps, from_bytes: float, to_bytes: float | None = None) -> Steps:
    return [replace(step, from_bytes=from_bytes, to_bytes=to_bytes) for step in steps]


def _calls(*called: tuple[str, str]) -> Steps:
    """Return consecutive calls: each starts when the root (rank 0) has finished the previous one."""
    return [Step("call", call=call) for call in called]


def _barrier_recursive_doubling(p: int, _: Parameters) -> Steps:
    power = _power(p)
    inner = [Step("bit", distance, 0.0) for distance in _bits(p)]
    return _folded(p, "low", [Step("stay", power, 0.0)], inner, [Step("aside", power, 0.0)])


def _allreduce_recursive_doubling(p: int, _: Parameters) -> Steps:
    inner = [Step("bit", distance, 1.0, True) for distance in _bits(p)]
    return _folded(p, "odd", [Step("stay", 1, 1.0, True)], inner, [Step("aside", 1, 1.0)])


def _rabenseifner(p: int, gather: Steps, after: Steps) -> Steps:
    before = [Step("both", 1, 0.5, True), Step("stay", 1, 0.5)]
    return _folded(p, "even", before, [*_halve(p, outwards=True), *gather], after)


def _allreduce_rabenseifner(p: int, _: Parameters) -> Steps:
    gather = [replace(step, combines=False) for step in reversed(_halve(p, outwards=True))]
    steps = _rabenseifner(p, gather, [Step("aside", 1, 1.0)])
    return _sizes(_allreduce_linear(p, {}), 0, _power(p)) + _sizes(steps, _power(p))


def _reduce_rabenseifner(p: int, _: Parameters) -> Steps:
    gather = [
        replace(step, combines=False, first=step.distance, last=2 * (step.distance or 0) - 1, every=1)
        for step in reversed(_halve(p, outwards=True))
    ]
    return _sizes(_calls(("reduce", "linear")), 0, _power(p)) + _sizes(_rabenseifner(p, gather, []), _power(p))


def _allreduce_ring(p: int, _: Parameters) -> Steps:
    few = _calls(("allreduce", "recursive_doubling"))
    return _sizes(few, 0, p) + _sizes(_around(p, 1 / p, True) + _around(p, 1 / p), p)


def _allreduce_segmented_ring(p: int, parameters: Parameters) -> Steps:
    # With more bytes a block has more than one segment.
    most = p * parameters.get("segment_bytes", 1 << 20)
    return [replace(step, to_bytes=step.to_bytes or most) for step in _allreduce_ring(p, parameters)]


def _allreduce_linear(p: int, _: Parameters) -> Steps:
    return _calls(("reduce", "linear"), ("bcast", "linear"))


def _allgather_recursive_doubling(p: int, _: Parameters) -> Steps:
    return [Step("bit", distance, float(distance)) for distance in _bits(p)] if p == _power(p) else []


def _allgather_neighbor_exchange(p: int, _: Parameters) -> Steps:
    first, further = Step("neighbour", 1, 1.0), Step("neighbour", 1, 2.0, times=p // 2 - 1)
    return [] if p % 2 else [first] if p == 2 else [first, further]


def _reduce_scatter_recursive_halving(p: int, _: Parameters) -> Steps:
    return _folded(p, "odd", [Step("stay", 1, 1.0, True)], _halve(p, outwards=False), [Step("aside", 1, 1 / p)])


def _scatter(p: int) -> Steps:
    """Return the steps of a scatter down a binomial tree, starting with the most distant half of the ranks."""
    steps = [replace(step, combines=False) for step in _halve(p, outwards=False)]
    return [replace(step, first=0, last=p - 1, every=2 * (step.distance or 0)) for step in steps]


def _bcast_scatter_allgather(p: int, _: Parameters) -> Steps:
    gather = [replace(step, combines=False) for step in reversed(_halve(p, outwards=False))]
    return [*_scatter(p), *gather] if p == _power(p) else []


def _bcast_scatter_allgather_ring(p: int, _: Parameters) -> Steps:
    return [*_scatter(p), *_around(p, 1 / p)] if p == _power(p) else []


EXCHANGES: dict[tuple[str, str], Callable[[int, Parameters], Steps]] = {
    ("barrier", "recursive_doubling"): _barrier_recursive_doubling,
    ("allreduce", "linear"): _allreduce_linear,
    ("allreduce", "nonoverlapping"): lambda p, _: _calls(("reduce", "default"), ("bcast", "default")),
    ("allreduce", "recursive_doubling"): _allreduce_recursive_doubling,
    ("allreduce", "ring"): _allreduce_ring,
    ("allreduce", "segmented_ring"): _allreduce_segmented_ring,
    ("allreduce", "rabenseifner"): _allreduce_rabenseifner,
    ("reduce", "rabenseifner"): _reduce_rabenseifner,
    ("allgather", "ring"): lambda p, _: _around(p, 1.0),
    ("allgather", "recursive_doubling"): _allgather_recursive_doubling,
    ("allgather", "neighbor_exchange"): _allgather_neighbor_exchange,
    ("reduce_scatter", "ring"): lambda p, _: _around(p, 1 / p, True),
    ("reduce_scatter", "recursive_halving"): _reduce_scatter_recursive_halving,
    ("bcast", "scatter_allgather"): _bcast_scatter_allgather,
    ("bcast", "scatter_allgather_ring"): _bcast_scatter_allgather_ring,
}


def steps_of(collective: str, algorithm: str, parameters: Parameters, processes: int) -> Steps:
    """Return the steps of an algorithm; [] if they are unknown or the algorithm does not support this number of ranks."""
    known = EXCHANGES.get((collective, algorithm))
    return known(processes, parameters) if known and processes > 1 else []


def messages(step: Step, p: int) -> list[tuple[int, int]]:
    """Return sender and receiver of each message of a step; of two repetitions of a neighbour exchange, those to the next rank (as many
    go the other way).
    """
    pairs = range(step.pairs)
    even, odd = [2 * i for i in pairs], [2 * i + 1 for i in pairs]
    low = ([*pairs], [p - step.pairs + i for i in pairs])
    stay, aside = {"even": (even, odd), "odd": (odd, even)}.get(step.stays, low)
    if step.partner == "bit":
        part = sorted({*range(p)} - {*aside})
        numbers = (
            range(p - step.pairs) if step.first is None else range(step.first, (step.last or 0) + 1, step.every or 1)
        )
        return [(part[i], part[i ^ (step.distance or 0)]) for i in numbers]
    to_next = [([*range(p)], [*range(1, p), 0])]
    ends = {
        "next": to_next, "neighbour": to_next, "stay": [(aside, stay)], "aside": [(stay, aside)],
        "both": [(aside, stay), (stay, aside)],
    }[step.partner]  # fmt: skip
    return [pair for senders, receivers in ends for pair in zip(senders, receivers, strict=True)]
