"""The steps of algorithms in which many ranks send at once (doubling, halving, rings), and of composite algorithms.

As in Open MPI's ompi/mca/coll/base (4.1 and 5.0; the table written from here is described in docs/files.md). Algorithms of
the same name in other libraries send the same messages, except for few elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Step:
    """Messages that leave at the same time, at most one from each rank and at most one to each; or a whole call.

    Attributes:
        partner: who sends to whom. `next`: every rank to the next one, the last one to rank 0. `neighbour`: each rank
            exchanges with the next or the previous one, in turns. `bit`: ranks that take part, numbered from 0, exchange with
            the one whose number differs in the bit `distance`. `stay`: those that stand aside send to the one that takes part
            for them; `aside`: the reverse; `both`: the two exchange. `call`: no messages, but another algorithm.
        distance: of the two ranks, or of their numbers.
        share: part of the benchmark's message size in each message.
        combines: the receiver adds what it gets to its own.
        times: how often in a row.
        first, last, every: numbers of the senders (`bit`), if not all send.
        stays: `even`, `odd`: this one of each of the first `pairs` pairs of neighbours takes part; `low`: the last
            `pairs` ranks stand aside, and rank - (P - `pairs`) takes part for them.
        call: collective and algorithm.
        from_bytes, to_bytes: sizes (B) of the benchmark for which the step is one of the algorithm, without `to_bytes`.
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
    """Ranks beyond a power of two: one of each of the first pairs stands aside between *before* and *after*."""
    pairs = p - _power(p)
    return [replace(step, stays=stays, pairs=pairs) for step in [*before, *inner, *after]] if pairs else inner


def _around(p: int, share: float, combines: bool = False) -> Steps:
    return [Step("next", 1, share, combines, p - 1)]


def _halve(p: int, outwards: bool) -> Steps:
    """Exchange halves, then quarters, ..., and combine; *outwards*: with the nearest rank first."""
    bits = _bits(p)
    distances = bits if outwards else bits[::-1]
    return [Step("bit", distance, 0.5**k, True) for k, distance in enumerate(distances, 1)]


def _sizes(steps: Steps, from_bytes: float, to_bytes: float | None = None) -> Steps:
    return [replace(step, from_bytes=from_bytes, to_bytes=to_bytes) for step in steps]


def _calls(*called: tuple[str, str]) -> Steps:
    """Consecutive calls: each begins when the root (rank 0) has finished the previous one."""
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
    # With more bytes a block has a second segment.
    most = p * parameters.get("segment_bytes", 1 << 20)
    return [replace(step, to_bytes=step.to_bytes or most) for step in _allreduce_ring(p, parameters)]


def _allreduce_linear(p: int, _: Parameters) -> Steps:
    return _calls(("reduce", "linear"), ("bcast", "linear"))


def _allreduce_nonoverlapping(p: int, _: Parameters) -> Steps:
    return _calls(("reduce", "default"), ("bcast", "default"))


def _allgather_ring(p: int, _: Parameters) -> Steps:
    return _around(p, 1.0)


def _allgather_recursive_doubling(p: int, _: Parameters) -> Steps:
    return [Step("bit", distance, float(distance)) for distance in _bits(p)] if p == _power(p) else []


def _allgather_neighbor_exchange(p: int, _: Parameters) -> Steps:
    first, further = Step("neighbour", 1, 1.0), Step("neighbour", 1, 2.0, times=p // 2 - 1)
    return [] if p % 2 else [first] if p == 2 else [first, further]


def _reduce_scatter_ring(p: int, _: Parameters) -> Steps:
    return _around(p, 1 / p, True)


def _reduce_scatter_recursive_halving(p: int, _: Parameters) -> Steps:
    return _folded(p, "odd", [Step("stay", 1, 1.0, True)], _halve(p, outwards=False), [Step("aside", 1, 1 / p)])


def _scatter(p: int) -> Steps:
    """Down a binomial tree, the half of the ranks that is farthest first."""
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
    ("allreduce", "nonoverlapping"): _allreduce_nonoverlapping,
    ("allreduce", "recursive_doubling"): _allreduce_recursive_doubling,
    ("allreduce", "ring"): _allreduce_ring,
    ("allreduce", "segmented_ring"): _allreduce_segmented_ring,
    ("allreduce", "rabenseifner"): _allreduce_rabenseifner,
    ("reduce", "rabenseifner"): _reduce_rabenseifner,
    ("allgather", "ring"): _allgather_ring,
    ("allgather", "recursive_doubling"): _allgather_recursive_doubling,
    ("allgather", "neighbor_exchange"): _allgather_neighbor_exchange,
    ("reduce_scatter", "ring"): _reduce_scatter_ring,
    ("reduce_scatter", "recursive_halving"): _reduce_scatter_recursive_halving,
    ("bcast", "scatter_allgather"): _bcast_scatter_allgather,
    ("bcast", "scatter_allgather_ring"): _bcast_scatter_allgather_ring,
}


def steps_of(collective: str, algorithm: str, parameters: Parameters, processes: int) -> Steps:
    """The steps of an algorithm; none if they are unknown or it does not support that number of ranks."""
    known = EXCHANGES.get((collective, algorithm))
    return known(processes, parameters) if known and processes > 1 else []
