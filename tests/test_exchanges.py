"""The steps of exchanges: every rank gets the correct data, over the pairs of ranks in the verification patterns."""

from __future__ import annotations

import pytest
from collstudy.calibration.exchanges import CROSSING, counts_of
from collstudy.sources.edges import EXCHANGE_COLUMNS, Launched, exchanges
from collstudy.study.exchanges import EXCHANGES, Step, messages, steps_of
from collstudy.study.patterns import PATTERNS
from collstudy.study.placement import Core

COUNTS = (2, 3, 4, 6, 7, 8, 12, 16, 20)


def own(collective: str, algorithm: str, p: int) -> list[Step]:
    return [step for step in steps_of(collective, algorithm, {}, p) if step.partner != "call"]


@pytest.mark.parametrize(
    ("collective", "algorithm", "pattern"),
    [
        ("barrier", "recursive_doubling", "recursive_doubling"),
        ("allreduce", "recursive_doubling", "mpich_recursive_doubling"),
        ("allreduce", "ring", "ring"),
    ],
)
@pytest.mark.parametrize("p", COUNTS)
def test_steps_are_between_the_ranks_of_the_pattern(collective: str, algorithm: str, pattern: str, p: int) -> None:
    found = {pair for step in own(collective, algorithm, p) for pair in messages(step, p)}
    assert found == PATTERNS[pattern](p, {})


@pytest.mark.parametrize("algorithm", ["recursive_doubling", "rabenseifner"])
@pytest.mark.parametrize("p", COUNTS)
def test_every_rank_has_the_sum_of_all_after_an_allreduce(algorithm: str, p: int) -> None:
    # The ranks whose values each rank's result contains (for Rabenseifner's, of the part that the rank then has).
    has = [{rank} for rank in range(p)]
    for step in own("allreduce", algorithm, p):
        before = [set(known) for known in has]
        for sender, receiver in messages(step, p):
            has[receiver] |= before[sender]
    assert all(known == set(range(p)) for known in has)


@pytest.mark.parametrize("p", COUNTS)
def test_what_rabenseifner_sends(p: int) -> None:
    steps = own("allreduce", "rabenseifner", p)
    received = [0.0] * p
    for step in steps:
        for _, receiver in messages(step, p):
            received[receiver] += (step.share or 0) * step.times
    # A participating rank receives (1 - 1 / power) of the vector twice; one that represents another rank gets a whole vector more.
    power = 1 << (p.bit_length() - 1)
    folded = 2 * (p - power)
    assert received[folded:] == pytest.approx([2 * (1 - 1 / power)] * (p - folded))
    assert received[0:folded:2] == pytest.approx([2 * (1 - 1 / power) + 1] * (folded // 2))
    # A rank that does not participate gets a half to reduce, and the result.
    assert received[1:folded:2] == pytest.approx([1.5] * (folded // 2))
    # Of two ranks that exchange halves, each combines the half that it receives.
    assert sum(step.combines for step in steps) == len(bin(power)) - 3 + bool(folded)


def test_a_reduce_gathers_at_the_root() -> None:
    has = [{rank} for rank in range(8)]
    for step in own("reduce", "rabenseifner", 8)[3:]:
        for sender, receiver in messages(step, 8):
            has[receiver] |= has[sender]
    assert has[0] == set(range(8))


@pytest.mark.parametrize(
    ("algorithm", "p", "share"), [("ring", 6, 5), ("recursive_doubling", 8, 7), ("neighbor_exchange", 6, 5)]
)
def test_an_allgather_receives_the_parts_of_all_others(algorithm: str, p: int, share: float) -> None:
    assert sum((step.share or 0) * step.times for step in own("allgather", algorithm, p)) == share
    assert steps_of("allgather", "recursive_doubling", {}, 6) == steps_of("allgather", "neighbor_exchange", {}, 7) == []


def test_a_broadcast_scatters_and_gathers() -> None:
    holds = [{0} if rank == 0 else set() for rank in range(16)]
    for step in own("bcast", "scatter_allgather", 16)[:4]:
        for sender, receiver in messages(step, 16):
            assert holds[sender] == {0}, "a rank sends what it does not have"
            holds[receiver] = {0}
    assert all(holds)


def test_small_calls_are_made_of_others() -> None:
    few = [step for step in steps_of("allreduce", "ring", {}, 8) if step.partner == "call"]
    assert [(step.call, step.from_bytes, step.to_bytes) for step in few] == [
        (("allreduce", "recursive_doubling"), 0, 8)
    ]
    segmented = steps_of("allreduce", "segmented_ring", {"segment_bytes": 1024}, 8)
    assert {step.to_bytes for step in segmented} == {8, 8 * 1024}
    for (collective, algorithm), _ in EXCHANGES.items():
        for step in steps_of(collective, algorithm, {}, 12):
            assert (step.partner == "call") == any(step.call)


@pytest.mark.parametrize(("p", "crossing"), [(16, 2), (12, 1.5)])
def test_messages_between_groups_are_counted_by_who_sends_to_whom(p: int, crossing: float) -> None:
    """With 12 ranks, 1, 3, 5, 7 and 8 to 11 take part: half of the second step's messages cross, and all of the third's."""
    placed = [Core((rank // 4, rank % 4), rank, 0) for rank in range(p)]
    assert counts_of(own("allreduce", "recursive_doubling", p), 64, placed)[CROSSING] == crossing


def test_the_table_has_what_models_of_the_launches_need() -> None:
    rows = exchanges([Launched("openmpi", "allreduce", "default", (), "core", (), 1, 12)])
    assert {(row["collective"], row["algorithm"]) for row in rows} >= {
        ("allreduce", "recursive_doubling"), ("allreduce", "ring"), ("allreduce", "nonoverlapping"),
        ("barrier", "recursive_doubling"),
    }  # fmt: skip
    assert all(set(EXCHANGE_COLUMNS) <= set(row) for row in rows)
