"""The pairs (sender, receiver) of each algorithm of Open MPI's coll/tuned and of MPICH, with root 0.

They are used to verify that a forced algorithm ran: a launch under Open MPI's monitoring component, or under libmessages.so
for MPICH, records the pairs of ranks that exchanged messages. Sources of the tree shapes: Open MPI's
ompi/mca/coll/base/coll_base_topo.c (4.1 and 5.0), MPICH's src/mpi/coll (5.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Edges = frozenset[tuple[int, int]]


def linear(p: int, _: Mapping[str, int]) -> Edges:
    """Star: the root sends to every other rank."""
    return frozenset((0, rank) for rank in range(1, p))


def chain(p: int, parameters: Mapping[str, int]) -> Edges:
    """`fanout` chains of nearly equal length below the root (ompi_coll_base_topo_build_chain)."""
    fanout = max(1, min(parameters.get("fanout", 4), p - 1))
    if p == 1:
        return frozenset()
    length, longer = divmod(p - 1, fanout)
    edges, start = set(), 1
    for index in range(fanout):
        size = length + (1 if index < longer else 0)
        previous = 0
        for rank in range(start, start + size):
            edges.add((previous, rank))
            previous = rank
        start += size
    return frozenset(edges)


def pipeline(p: int, _: Mapping[str, int]) -> Edges:
    """One chain through all ranks."""
    return frozenset((rank, rank + 1) for rank in range(p - 1))


def binary(p: int, _: Mapping[str, int]) -> Edges:
    """Binary tree filled level by level; children are one level width apart (ompi_coll_base_topo_build_tree, fan-out 2)."""
    edges, width, first = set(), 1, 0
    while first < p:
        for rank in range(first, min(first + width, p)):
            for child in (rank + width, rank + 2 * width):
                if child < p:
                    edges.add((rank, child))
        first += width
        width *= 2
    return frozenset(edges)


def binomial(p: int, _: Mapping[str, int]) -> Edges:
    """Binomial tree: rank r receives from r without its highest bit (ompi_coll_base_topo_build_bmtree)."""
    return frozenset((rank - (1 << (rank.bit_length() - 1)), rank) for rank in range(1, p))


def knomial(p: int, parameters: Mapping[str, int]) -> Edges:
    """K-nomial tree (k = `radix`): rank r receives from r without its lowest digit in base k (ompi_coll_base_topo_build_kmtree)."""
    radix = parameters.get("radix", 4)
    edges = set()
    for rank in range(1, p):
        digit = 1
        while rank % (digit * radix) == 0:
            digit *= radix
        edges.add((rank - rank % (digit * radix), rank))
    return frozenset(edges)


def in_order_binomial(p: int, _: Mapping[str, int]) -> Edges:
    """Binomial tree of MPICH, and of Open MPI's reductions (ompi_coll_base_topo_build_in_order_bmtree): rank r belongs to r without
    its lowest bit.
    """
    return frozenset((rank & (rank - 1), rank) for rank in range(1, p))


def barrier_linear(p: int, _: Mapping[str, int]) -> Edges:
    """All ranks send to rank 0, which answers each of them."""
    return frozenset((a, b) for rank in range(1, p) for a, b in ((0, rank), (rank, 0)))


def recursive_doubling(p: int, _: Mapping[str, int]) -> Edges:
    """Ranks below the largest power of two exchange with rank XOR 2^k; each rank above it exchanges with rank - that power."""
    power = 1 << (p.bit_length() - 1)
    edges = set()
    mask = 1
    while mask < power:
        edges |= {(rank, rank ^ mask) for rank in range(power)}
        mask <<= 1
    for rank in range(power, p):
        edges |= {(rank, rank - power), (rank - power, rank)}
    return frozenset(edges)


def barrier_tree(p: int, _: Mapping[str, int]) -> Edges:
    """Binomial tree, up and down, with partners rank XOR 2^k (ompi_coll_base_barrier_intra_tree)."""
    edges, jump = set(), 1
    while jump < p:
        for rank in range(p):
            partner = rank ^ jump
            if not rank & (jump - 1) and rank < partner < p:
                edges |= {(rank, partner), (partner, rank)}
        jump <<= 1
    return frozenset(edges)


def ring(p: int, _: Mapping[str, int]) -> Edges:
    """Ring: each rank sends to the next one, the last to the first. In a double ring, a message travels around it twice."""
    return frozenset((rank, (rank + 1) % p) for rank in range(p)) if p > 1 else frozenset()


def bruck(p: int, _: Mapping[str, int]) -> Edges:
    """Bruck: in step k, rank r sends to rank (r + 2^k) modulo P."""
    edges, distance = set(), 1
    while distance < p:
        edges |= {(rank, (rank + distance) % p) for rank in range(p)}
        distance <<= 1
    return frozenset(edges)


def kary(p: int, parameters: Mapping[str, int]) -> Edges:
    """MPICH's k-ary tree (k = `fanout`): the children of rank r are k r + 1 to k r + k."""
    return frozenset(((rank - 1) // parameters.get("fanout", 2), rank) for rank in range(1, p))


def mpich_binomial_reduce(p: int, _: Mapping[str, int]) -> Edges:
    """MPICH's binomial tree with messages towards the root."""
    return frozenset((child, parent) for parent, child in in_order_binomial(p, {}))


def mpich_recursive_doubling(p: int, _: Mapping[str, int]) -> Edges:
    """MPICH's recursive doubling: the even ones of the first 2 (P - 2^k) ranks send to the next rank and get the result from it."""
    power = 1 << (p.bit_length() - 1)
    extra = p - power
    edges = {edge for rank in range(0, 2 * extra, 2) for edge in ((rank, rank + 1), (rank + 1, rank))}
    ranks = [*range(1, 2 * extra, 2), *range(2 * extra, p)]
    mask = 1
    while mask < power:
        edges |= {(ranks[index], ranks[index ^ mask]) for index in range(power)}
        mask <<= 1
    return frozenset(edges)


#: Patterns whose algorithms can send a message in segments along each edge.
SEGMENTED = ("chain", "pipeline", "binary", "binomial", "kary")


def messages_an_edge(pattern: str, parameters: Mapping[str, int], size: int) -> int | None:
    """Return the number of messages per edge of a segmented pattern for a broadcast of *size* bytes; None if unknown."""
    segment = parameters.get("segment_bytes", 0)
    return -(-size // segment) if segment > 0 and pattern in SEGMENTED else None


PATTERNS: dict[str, Callable[[int, Mapping[str, int]], Edges]] = {
    "linear": linear,
    "chain": chain,
    "pipeline": pipeline,
    "binary": binary,
    "binomial": binomial,
    "barrier_linear": barrier_linear,
    "recursive_doubling": recursive_doubling,
    "barrier_tree": barrier_tree,
    "double_ring": ring,
    "bruck": bruck,
    "ring": ring,
    "kary": kary,
    "mpich_binomial": in_order_binomial,
    "mpich_binomial_reduce": mpich_binomial_reduce,
    "mpich_recursive_doubling": mpich_recursive_doubling,
}
