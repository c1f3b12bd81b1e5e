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


def bruck(p: int, parameters: Mapping[str, int]) -> Edges:
    """Bruck with radix k (2 by default): in step i, rank r sends to the ranks (r + j k^i) modulo P, j = 1 to k - 1, with j k^i < P."""
    radix = parameters.get("radix", 2)
    edges, step = set(), 1
    while step < p:
        edges |= {(rank, (rank + far) % p) for rank in range(p) for far in range(step, min(radix * step, p), step)}
        step *= radix
    return frozenset(edges)


def kary(p: int, parameters: Mapping[str, int]) -> Edges:
    """MPICH's k-ary tree (k = `fanout`): the children of rank r are k r + 1 to k r + k."""
    return frozenset(((rank - 1) // parameters.get("fanout", 2), rank) for rank in range(1, p))


def mpich_binomial_reduce(p: int, _: Mapping[str, int]) -> Edges:
    """MPICH's binomial tree with messages towards the root."""
    return frozenset((child, parent) for parent, child in in_order_binomial(p, {}))


def mpich_recursive_doubling(p: int, parameters: Mapping[str, int]) -> Edges:
    """MPICH's recursive exchange, with radix 2 recursive doubling: P is reduced to a power of the radix, and ranks whose numbers
    differ in one digit exchange (MPII_Recexchalgo_get_neighbors).
    """
    ranks, edges = _reduced(p, parameters.get("radix", 2))
    return edges | _one_digit(ranks, min(parameters.get("radix", 2), p))


def mpich_halving_exchange(p: int, parameters: Mapping[str, int]) -> Edges:
    """The same, after an exchange with the rank whose number has the digits in reverse order (MPIR_Allgather_intra_recexch)."""
    radix = min(parameters.get("radix", 2), p)
    ranks, _ = _reduced(p, radix)
    reverse = {}
    for number in range(len(ranks)):
        rest, reversed_number, power = number, 0, 1
        while power < len(ranks):
            rest, digit = divmod(rest, radix)
            reversed_number, power = reversed_number * radix + digit, power * radix
        reverse[number] = reversed_number
    swapped = {(ranks[a], ranks[b]) for a, b in reverse.items() if a != b}
    return mpich_recursive_doubling(p, parameters) | swapped


def _reduced(p: int, radix: int) -> tuple[list[int], Edges]:
    """Return the ranks that take part in a recursive exchange, a power of the radix, and the edges to and from the others, which
    are the first k - 1 of k successive ranks and exchange with the last one.
    """
    radix = min(radix, p)
    power = _power(p, radix)
    others = p - power
    end = others * radix // (radix - 1) if others else 0
    pairs = {(rank, min(rank - rank % radix + radix - 1, end)) for rank in range(end) if rank % radix != radix - 1}
    ranks = [
        number * radix + radix - 1 if others and number < others // (radix - 1) else number + others
        for number in range(power)
    ]
    return ranks, frozenset(edge for a, b in pairs for edge in ((a, b), (b, a)))


def _power(p: int, radix: int) -> int:
    """Return the largest power of the radix that is at most *p*."""
    power = 1
    while radix > 1 and power * radix <= p:
        power *= radix
    return power


def _one_digit(ranks: list[int], radix: int) -> Edges:
    """Return the edges between ranks whose indices differ in one digit; the number of ranks is a power of the radix."""
    edges, step = set(), 1
    while step < len(ranks):
        for index, rank in enumerate(ranks):
            first = index - index // step % radix * step
            edges |= {(rank, ranks[first + digit * step]) for digit in range(radix)} - {(rank, rank)}
        step *= radix
    return frozenset(edges)


def mpich_multiplying(p: int, parameters: Mapping[str, int]) -> Edges:
    """MPICH's recursive multiplying: ranks below the largest power of the radix exchange with those that differ in one digit; each
    other rank r exchanges with r modulo that power.
    """
    radix = parameters.get("radix", 2)
    power = _power(p, radix)
    others = {edge for rank in range(power, p) for edge in ((rank, rank % power), (rank % power, rank))}
    return _one_digit(list(range(power)), radix) | others


def dissemination(p: int, parameters: Mapping[str, int]) -> Edges:
    """Dissemination with radix k: in step i, rank r sends to the ranks (r + j k^i) modulo P, j = 1 to k - 1."""
    radix = min(parameters.get("radix", 2), p)
    edges, step = set(), 1
    while step < p:
        edges |= {(rank, (rank + j * step) % p) for rank in range(p) for j in range(1, radix)}
        step *= radix
    return frozenset((a, b) for a, b in edges if a != b)


def bruck_downwards(p: int, parameters: Mapping[str, int]) -> Edges:
    """Bruck (radix k), in which blocks travel to lower ranks, as in MPICH's allgathers."""
    return frozenset((b, a) for a, b in bruck(p, parameters))


def complete(p: int, _: Mapping[str, int]) -> Edges:
    """Every rank sends to every other one."""
    return frozenset((a, b) for a in range(p) for b in range(p) if a != b)


def existing_partners(p: int, _: Mapping[str, int]) -> Edges:
    """Ranks exchange with rank XOR 2^k where it exists, as in MPICH's scans."""
    steps = [1 << k for k in range((p - 1).bit_length())]
    return frozenset((rank, rank ^ step) for rank in range(p) for step in steps if rank ^ step < p)


def mpich_helped_doubling(p: int, parameters: Mapping[str, int]) -> Edges:
    """The same; ranks without a partner in a step get its data from ranks of their own half of the exchange, by recursive halving
    (MPIR_Reduce_scatter_intra_recursive_doubling).
    """
    edges = set(existing_partners(p, parameters))
    for k in range((p - 1).bit_length()):
        step = 1 << k
        for rank in range(p):
            first = rank >> k << k
            complete_ranks = p - first - step
            if (first ^ step) + step <= p or complete_ranks <= 0:
                continue
            for bit in reversed(range(k)):
                other, half = rank ^ (1 << bit), rank >> (bit + 1) << (bit + 1)
                if rank < other and rank < half + complete_ranks <= other:
                    edges.add((rank, other))
    return frozenset(edges)


def mpich_scatter(p: int, parameters: Mapping[str, int]) -> Edges:
    """MPICH's binomial scatter of `size_bytes` in a broadcast: ranks behind the last block, rounded up, get nothing."""
    size = parameters.get("size_bytes", p)
    return frozenset((parent, rank) for parent, rank in in_order_binomial(p, {}) if rank * -(-size // p) < size)


def mpich_scatter_ring(p: int, parameters: Mapping[str, int]) -> Edges:
    """The same, followed by an allgather around a ring."""
    return mpich_scatter(p, parameters) | ring(p, {})


def mpich_scatter_doubling(p: int, parameters: Mapping[str, int]) -> Edges:
    """The same, followed by an allgather by recursive doubling."""
    return mpich_scatter(p, parameters) | mpich_helped_doubling(p, {})


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
    "mpich_halving_exchange": mpich_halving_exchange,
    "mpich_multiplying": mpich_multiplying,
    "mpich_helped_doubling": mpich_helped_doubling,
    "mpich_scatter_ring": mpich_scatter_ring,
    "mpich_scatter_doubling": mpich_scatter_doubling,
    "dissemination": dissemination,
    "bruck_downwards": bruck_downwards,
    "complete": complete,
    "existing_partners": existing_partners,
}
