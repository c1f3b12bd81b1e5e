"""A calibrated machine: the simulated platform has the costs in its file."""

from __future__ import annotations

import io
import itertools
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from collstudy.calibration.fitting import Request, Simulator
from collstudy.launch.execute import execute
from collstudy.launch.platforms import line, machine_text, platform
from collstudy.launch.simulator import environment, options_of, prepare, wrapper
from collstudy.study.config import Configuration
from collstudy.study.machines import Level, Machine, read_machine
from conftest import ROOT, finish, must
from test_calibrate import MAPPINGS


@pytest.mark.parametrize("level", ["core", "socket", "node"])
def test_the_simulated_thin_machine_costs_what_its_file_says(level: str, tmp_path: Path) -> None:
    configuration = Configuration(ROOT / "config")
    machine = configuration.machine("thin")
    costs = machine.simulation
    found = Simulator(configuration, 1).one(
        machine, Request("latency", "default", MAPPINGS[level], 2, (1, 1048576)), tmp_path
    )
    of = next(entry for entry in machine.levels if entry.name == level)
    for size in (2**k for k in range(21)):
        waited = costs["eager_limit_bytes"] <= size < costs["waited_limit_bytes"]
        expected = line(costs["waited_us" if waited else "delay_us"][level], size) + size / of.bandwidth_gb_s * 1e-3
        expected += 0 if waited else line(costs["send_us"], size)
        expected += line(costs["receive_us"], size) if size < costs["eager_limit_bytes"] else 0
        assert found["latency", "default", MAPPINGS[level], 2, size] == pytest.approx(expected, rel=0.03, abs=0.003)


def at_all(us: float) -> dict[str, list[list[float]]]:
    """Return a cost that is the same at all levels and for all sizes."""
    return {level: [[1, us]] for level in ("node", "socket", "core")}


def machine_of(**costs: Any) -> Machine:
    """Return a machine with two nodes of two sockets of four cores: 1 us per message, 10 GB/s, 0.1 us to send; and *costs*."""
    simulation = {"eager_limit_bytes": 4096, "send_us": [[1, 0.1]], "receive_us": [[1, 0.0]], "delay_us": at_all(1.0)}
    levels = tuple(
        Level(name, count, 1.1, 10.0, 10.0 if name == "node" else None)
        for name, count in (("node", 2), ("socket", 2), ("core", 4))
    )
    return Machine("m", "simulated", "m", "smpi-openmpi", levels, simulation=simulation | costs)


def with_level(machine: Machine, name: str, **changed: Any) -> Machine:
    """Return a machine with other values of a level."""
    levels = tuple(replace(level, **changed) if level.name == name else level for level in machine.levels)
    return replace(machine, levels=levels)


def took(
    machine: Machine,
    processes: int,
    size: int | None,
    algorithm: str = "linear",
    mapping: str = "core",
    collective: str = "bcast",
) -> float:
    """Return the latency (us) of a collective; a barrier has no size."""
    asked = Request(collective, algorithm, mapping, processes, size and (size, size))
    (found,) = Simulator(Configuration(ROOT / "config"), 1).all(machine, [asked]).values()
    return found


def barrier(machine: Machine, algorithm: str, mapping: str = "core", processes: int = 2) -> float:
    return took(machine, processes, None, algorithm, mapping, "barrier")


def test_a_core_starts_its_next_message_when_it_has_done_its_part_of_the_last() -> None:
    """The root sends seven messages to 8 ranks: the last starts 6 x 0.5 x 1.1 us after the first instead of 6 x 0.1 us."""
    free, busy = (took(machine_of(busy={"core": part, "socket": part}), 8, 8) for part in (0.0, 0.5))
    # Receiver i of 7 waits i x 0.45 us longer, the root does not wait; the preceding barrier leaves some skew.
    assert busy - free == pytest.approx(sum(range(7)) * (0.55 - 0.1) / 8, rel=0.3)


def test_a_receiver_whose_last_message_came_from_another_rank_costs_its_sender_more() -> None:
    """With 3 ranks, the last message of the barrier to ranks 1 and 2 came from the root as well; with 8, to rank 4 only."""
    for processes, more in ((3, False), (8, True)):
        same, turn = (took(machine_of(turn={"core": part, "socket": part}), processes, 8) for part in (0.0, 1.0))
        assert (turn > same * 1.2) == more


def test_a_turn_takes_as_long_as_a_message_from_the_last_sender() -> None:
    """The last message of the barrier came from the other socket (recursive doubling), unlike most messages of the pipeline."""
    delays = {"node": [[1, 1.0]], "socket": [[1, 3.0]], "core": [[1, 1.0]]}
    same, turn = (
        took(machine_of(delay_us=delays, turn={"core": part, "socket": part}), 8, 8, "pipeline") for part in (0.0, 1.0)
    )
    # Rank 3 sends to rank 4, whose last message came from rank 0. Each rank but the last ends when it has sent.
    received = list(itertools.accumulate([3.1, 3.1, 3.1, 1.1, 3.1, 3.1, 3.1]))
    assert turn - same == pytest.approx((sum(received) + received[-1]) / 8, rel=0.1)


def test_a_message_from_another_node_is_not_the_last_one_in_the_queue() -> None:
    """The last message of the barrier came from the other node, the one before from another rank of the own one."""
    same, turn = (took(machine_of(turn={"core": part, "socket": part}), 16, 8, "pipeline") for part in (0.0, 1.0))
    received = list(itertools.accumulate([*[1.1] * 7, 0.0, *[1.1] * 7]))
    assert turn - same == pytest.approx((sum(received) + received[-1]) / 16, rel=0.1)


def test_a_turn_does_not_take_longer_for_a_longer_message() -> None:
    """Only the entry of the receiver's queue is waited for: 4000 bytes, which take 5 us, cost as much more as 64 bytes."""
    curve = [[1, 1.0], [96, 1.0], [4000, 5.0]]
    delays = {"node": curve, "socket": curve, "core": curve}
    more = [
        took(machine_of(delay_us=delays, turn={"core": 1.0, "socket": 1.0}), 8, size)
        - took(machine_of(delay_us=delays), 8, size)
        for size in (64, 4000)
    ]
    assert more[0] > 1
    assert more[1] == pytest.approx(more[0], rel=0.3)


def test_half_of_a_turn_delays_the_next_message() -> None:
    """A turn of 1.1 us keeps the root for 1.2 us. Half of it on top of being busy for 0.55 us is less, on top of 1.1 us more."""
    half, whole = (
        took(machine_of(busy={"core": part, "socket": part}, turn={"core": 1.0, "socket": 1.0}), 8, 8)
        for part in (0.5, 1.0)
    )
    assert whole - half > 0.3


def test_a_message_that_goes_to_a_buffer_keeps_its_sender_busy_for_longer() -> None:
    """As above, but only messages of more than 96 bytes cost the root half of their time."""
    buffered = {"core": 0.5, "socket": 0.5}
    for size, more in ((64, 0.0), (128, sum(range(7)) * (0.55 - 0.1) / 8)):
        free, busy = (took(machine_of(**costs), 8, size) for costs in ({}, {"busy_buffered": buffered}))
        assert busy - free == pytest.approx(more, rel=0.3, abs=1e-6)


def test_an_eager_message_has_a_rate_of_its_own() -> None:
    """4000 bytes at 100 instead of 10 GB/s; the root of two ranks does not wait for them."""
    slow, fast = (took(machine_of(**costs), 2, 4000) for costs in ({}, {"eager_gb_s": {"core": 100.0}}))
    assert slow - fast == pytest.approx((0.4 - 0.04) / 2, rel=0.03)
    assert took(machine_of(), 2, 4096) == took(machine_of(eager_gb_s={"core": 100.0}), 2, 4096)


def test_long_messages_share_their_senders_core() -> None:
    """A megabyte takes 105 us alone; with a share of 1, each of three takes three times as long, with a share of 0 no longer."""
    alone, apart, shared = (
        took(machine_of(share={"core": part}), processes, 1 << 20) for processes, part in ((2, 1.0), (4, 0.0), (4, 1.0))
    )
    assert apart == pytest.approx(alone, rel=0.02)
    assert shared == pytest.approx(3 * alone, rel=0.03)


def test_the_readers_of_a_core_are_equally_fast_whatever_their_shares() -> None:
    """Three readers on the root's socket with a share of 1 and two on the other with 2 take 3 + 4 units of time, all of them."""
    assert took(machine_of(share={"core": 1.0, "socket": 2.0}), 6, 1 << 20) == pytest.approx(7 * 104.86, rel=0.03)


def test_the_first_reader_on_another_socket_slows_down_all_readers() -> None:
    """Six ranks by core: three readers on the root's socket and two on the other one take 5 units of time, or one more."""
    shares = {"core": 1.0, "socket": 1.0}
    for processes, more in ((4, 0.0), (6, 1.0)):
        plain, first = (
            took(machine_of(share=shares, **costs), processes, 1 << 20)
            for costs in ({}, {"share_first": {"socket": 1.0}})
        )
        assert first - plain == pytest.approx(more * 104.86, rel=0.03, abs=1)


def test_messages_between_sockets_of_a_node_share_the_bandwidth_between_them() -> None:
    """By socket, three of the root's five messages go to the other socket: they share 10 GB/s, and the others have their own rate."""
    apart, together = (
        took(machine_of(**costs), 6, 1 << 20, mapping="socket") for costs in ({}, {"between_gb_s": {"socket": 10.0}})
    )
    # The root and the three receivers wait for two more messages' times.
    assert together - apart == pytest.approx(4 * 2 * 104.86 / 6, rel=0.03)


def test_a_message_that_has_its_core_for_itself_is_not_slower_whatever_its_share() -> None:
    """With a share of 2, one message takes as long as with a share of 0, and each of two takes four times as long."""
    alone, still, two = (
        took(machine_of(share={"core": part}), processes, 1 << 20) for processes, part in ((2, 0.0), (2, 2.0), (3, 2.0))
    )
    assert still == pytest.approx(alone, rel=1e-6)
    assert two == pytest.approx(4 * alone, rel=0.03)


def test_what_was_just_received_flows_slower() -> None:
    """Rank 1 of a pipeline of three forwards at half the rate: the first hop takes 1 unit of time, the second 2."""
    alone = took(machine_of(), 2, 1 << 20)
    passed_on = took(machine_of(forward_gb_s={"core": 5.0}), 3, 1 << 20, "pipeline")
    assert passed_on == pytest.approx((1 + 3 + 3) / 3 * alone, rel=0.03)


def test_a_level_without_slower_forwarding_does_not_take_that_of_an_inner_level() -> None:
    """Both hops of a pipeline by node are between nodes."""
    within = {"core": 5.0, "socket": 5.0}
    plain, slow = (
        took(machine_of(**costs), 3, 1 << 20, "pipeline", "node") for costs in ({}, {"forward_gb_s": within})
    )
    assert slow == plain


def test_messages_between_nodes_share_the_network_interface() -> None:
    """By node, ranks 1 and 3 of four are on the other node: two messages share 10 GB/s, and one has its node to itself."""
    assert took(machine_of(), 4, 1 << 20, mapping="node") == pytest.approx((3 * 2 + 1) / 4 * 105.96, rel=0.03)


def barrier_by_node(processes: int, **costs: Any) -> float:
    """Recursive doubling by node: in the first step each rank exchanges with one of the other node, in the others within its node."""
    return barrier(machine_of(**costs), "recursive_doubling", "node", processes)


def test_short_messages_that_leave_a_node_together_share_its_message_rate() -> None:
    """Eight ranks of a node take 8 x 1 us to send; the only rank of a node does not take longer than without a limit."""
    gap = {"gap_us": {"node": 1.0}}
    assert barrier_by_node(16, **gap) - barrier_by_node(16) == pytest.approx(8 * 1.0, rel=0.05)
    assert barrier_by_node(2, **gap) == pytest.approx(barrier_by_node(2), rel=1e-6)


def test_long_messages_of_a_core_to_another_node_leave_one_after_the_other_below_a_limit() -> None:
    """The root's first and third message, 0.2 us later, go to the other node. If they do not share its link, the first arrives earlier."""
    size = 1 << 16
    shared, queued, longer = (
        took(machine_of(**limit), 4, size, mapping="node")
        for limit in ({}, {"queued_limit_bytes": 2 * size}, {"queued_limit_bytes": size})
    )
    assert shared - queued == pytest.approx((size / 10e3 - 0.2) / 4, rel=0.02)
    assert longer == shared


@pytest.mark.parametrize(("level", "steps"), [("node", 1), ("core", 2), ("socket", 1)])
def test_each_rank_on_the_receivers_node_beyond_the_pair_delays_a_message_by_the_time_of_its_level(
    level: str, steps: int
) -> None:
    """Of the four steps of 16 ranks by node, one is between nodes, two are between cores, and one between sockets."""
    more = barrier_by_node(16, poll_us={"node": 0.0, "socket": 0.0, "core": 0.0, level: 0.5}) - barrier_by_node(16)
    assert more == pytest.approx(steps * 6 * 0.5, rel=0.02)


def test_a_send_that_is_waited_for_has_an_eager_limit_of_its_own() -> None:
    """The halves of a split binary tree are sent by MPI_Send, all messages of a binary tree by MPI_Isend."""
    limits = {"waited_limit_bytes": 1 << 20, "waited_us": at_all(0.001)}
    slow = {"delay_us": {name: [[1, 1.0], [4095, 1.0], [4096, 50.0]] for name in ("node", "socket", "core")}}
    waited, not_waited = (
        took(machine_of(**limits, **slow), 4, 32768, name) for name in ("split_binary_tree", "linear")
    )
    assert waited < 20 < 50 < not_waited


def copied(us: float) -> Machine:
    """Return a machine on which an MPI_Send of 32 KiB takes *us* and 3.3 us for the bytes."""
    return machine_of(waited_limit_bytes=1 << 20, waited_us=at_all(us))


def test_senders_of_a_node_copy_their_messages_before_they_are_received() -> None:
    """The root of a linear reduce receives from three ranks in turn; all leave after their copies of 50 us."""
    each = 32768 / 10e3
    found = took(copied(50.0), 4, 32768, collective="reduce")
    assert found == pytest.approx((3 * (50 + each) + 50 + 3 * each) / 4, rel=0.02)


def test_a_sender_whose_receiver_waits_sends_until_the_message_arrives() -> None:
    """The root of a linear scatter sends to three ranks in turn, each of which takes 53.3 us."""
    found = took(copied(50.0), 4, 32768, collective="scatter")
    assert found == pytest.approx((1 + 2 + 3 + 3) * (50 + 32768 / 10e3) / 4, rel=0.02)


@pytest.mark.parametrize(("size", "queued"), [(96, False), (2000, True), (32768, True)])
def test_messages_from_another_cache_enter_the_receivers_queue_one_after_the_other(size: int, queued: bool) -> None:
    """Four of eight ranks are in the other socket. At 10 MB/s the second waits for one message, the third for two."""
    slow = with_level(copied(0.0), "socket", bandwidth_gb_s=0.01)
    assert (took(slow, 8, size, collective="reduce") > (1 + 2 + 3 + 4) * size / 10 / 8) == queued


def test_a_send_to_another_node_ends_when_its_message_is_copied() -> None:
    """The root of a linear reduce waits for the message's 50 us and its bytes, the sender only for a copy as between neighbours."""
    waited = {name: [[1, us]] for name, us in (("node", 50.0), ("socket", 3.0), ("core", 3.0))}
    costs: dict[str, Any] = {"waited_limit_bytes": 1 << 20, "waited_us": waited}
    each = 32768 / 10e3
    found = took(machine_of(**costs), 2, 32768, mapping="node", collective="reduce")
    assert found == pytest.approx((3 + each + 50 + each) / 2, rel=0.02)


def test_a_send_that_is_waited_for_may_flow_faster() -> None:
    costs: dict[str, Any] = {"waited_limit_bytes": 1 << 19, "waited_us": at_all(0.001)}
    for size, rate in ((1 << 18, 20e3), (1 << 19, 10e3)):
        found = took(machine_of(**costs, waited_gb_s={"core": 20.0}), 2, size, collective="reduce")
        assert found == pytest.approx(size / rate, rel=0.02, abs=1.2)


def test_a_send_to_another_node_may_flow_faster_than_others() -> None:
    """One of the two ranks of a reduce waits for the bytes; the other one's send ends when they are copied."""
    size = 1 << 18
    plain = machine_of(waited_limit_bytes=2 * size, waited_us=at_all(0.001))
    plain = with_level(plain, "node", shared_gb_s=40.0)
    faster = replace(plain, simulation=plain.simulation | {"waited_gb_s": {"node": 20.0}})
    before, after = (took(one, 2, size, mapping="node", collective="reduce") for one in (plain, faster))
    assert before - after == pytest.approx((size / 10e3 - size / 20e3) / 2, rel=0.02)


def test_a_core_that_sends_and_receives_copies_for_both() -> None:
    """Two ranks exchange the halves of a split binary tree: with a share of 1 this takes twice as long, between nodes it does not."""
    half = (1 << 19) / 10e3
    for mapping, longer in (("core", half), ("node", 0)):
        apart, shared = (
            took(machine_of(share={"core": part}), 3, 1 << 20, "split_binary_tree", mapping) for part in (0.0, 1.0)
        )
        assert shared - apart == pytest.approx(2 / 3 * longer, rel=0.03, abs=0.1)


def test_an_eager_copy_of_what_was_just_received_is_not_slower() -> None:
    costs: dict[str, Any] = {"waited_limit_bytes": 1 << 20, "waited_us": at_all(1.0)}
    plain, slow = (
        took(machine_of(**costs, **more), 4, 1 << 17, "split_binary_tree")
        for more in ({}, {"forward_gb_s": {"core": 5.0}})
    )
    assert slow == plain


def test_a_core_sends_eager_messages_to_other_nodes_one_after_the_other() -> None:
    """By node, ranks 1 and 3 of four are on the other node: one waits for the other. Without the limit, both share 10 GB/s."""
    costs: dict[str, Any] = {"waited_limit_bytes": 1 << 20, "waited_us": at_all(1.0)}
    alone = took(machine_of(), 2, 1 << 19, mapping="node")
    found = took(machine_of(**costs), 4, 1 << 19, mapping="node")
    assert found == pytest.approx((1 + 1 + 2 + 2) / 4 * alone, rel=0.02)


def test_a_synchronous_send_waits_for_its_acknowledgement() -> None:
    """The last message of the barrier of 3 ranks is from the root to rank 2, and the root waits for the answer.

    The root leaves the barrier one message and an answer after its message to rank 1, and sends the broadcast to ranks 1 and 2.
    """
    bytes_us = 256 / 10e3
    root = 0.1 + 0.1
    first = 1.1 + bytes_us + 1.1 + 1.1 - 1.0  # rank 1 leaves when the root's message arrives, 1 us after it was sent
    second = 1.1 + 0.1 + 0.1 + 1.0 - 0.1  # rank 2 leaves when it has sent the answer, for 0.1 us
    assert took(machine_of(), 3, 1) == pytest.approx((root + first + second) / 3, rel=0.01)


def test_an_acknowledgement_does_not_delay_the_next_message() -> None:
    """Two ranks pass two tokens twice, the second time with synchronous sends; sending an answer takes 0.1 us."""
    assert barrier(machine_of(), "double_ring") == pytest.approx(4 * 1.1 + 2 * (256 / 10e3 + 0.1), rel=0.01)


def test_a_synchronous_send_is_sent_from_a_buffer() -> None:
    """The second time, two tokens between two ranks take as long as messages of 256 B."""
    later = at_all(1.0) | {"core": [[1, 1.0], [128, 1.0], [256, 3.0]]}
    fast, slow = (barrier(machine_of(**costs), "double_ring") for costs in ({}, {"delay_us": later}))
    assert slow - fast == pytest.approx(2 * (3.0 - 1.0), rel=0.02)


def test_a_synchronous_send_is_empty_on_machines_that_are_not_calibrated() -> None:
    """At 1 MB/s, 256 bytes would take 256 us; SMPI adds 16 bytes to each of five messages."""
    levels = (Level("node", 2, 1.0, 0.001), Level("core", 1, 1.0, 0.001))
    machine = Machine("m", "simulated", "m", "smpi-openmpi", levels)
    assert 5 * 16 < barrier(machine, "double_ring") < 256


def test_a_switch_outside_of_the_calibrated_nodes_adds_its_latency() -> None:
    configuration = Configuration(ROOT / "config")
    machine = configuration.machine("thin-fat-tree")
    outer, inner = machine.levels[:2]
    asked = [Request("latency", "default", f"level-{level.name}", 2, (8, 8)) for level in (outer, inner)]
    across, within = (us for us in Simulator(configuration, 1).all(machine, asked).values())
    assert across - within == pytest.approx(outer.latency_us - inner.latency_us, abs=1e-3)


def test_a_core_of_switches_that_is_no_bottleneck_follows_the_costs_of_its_nodes(tmp_path: Path) -> None:
    """Costs that were copied from an earlier calibration made messages between leaf switches faster than those within."""
    for file in (ROOT / "config" / "machines").glob("thin*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    fitted = tmp_path / "thin.fitted.yaml"
    fitted.write_text(
        re.sub(
            r"latency_us: [\d.]+, bandwidth_gb_s: [\d.]+",
            "latency_us: 2, bandwidth_gb_s: 9",
            fitted.read_text(),
            count=1,
        )
    )
    machine = read_machine("thin-fat-tree", lambda name: tmp_path / f"{name}.yaml")
    outer, inner = machine.levels[:2]
    assert (inner.latency_us, inner.bandwidth_gb_s) == (2, 9)
    assert (outer.latency_us, outer.bandwidth_gb_s) == (2.36, 9)
    assert machine_text(machine).startswith(f"level group 8 0\nlevel node 24 {inner.shared_gb_s * 1e9:.9g}\n")


def test_short_messages_that_wait_for_a_units_link_take_as_long_as_if_they_shared_it() -> None:
    """Of an alltoall on 8 ranks, 16 messages of 1000 B leave each socket, over a link of 10 MB/s; eight share it at most."""
    slow = with_level(machine_of(), "socket", shared_gb_s=0.01)
    assert took(slow, 8, 1000, collective="alltoall") == pytest.approx(16 * 100, rel=0.2)


def on_all_cores(machine: Machine, program: str, folder: Path, timeout: float) -> str:
    """Return what a C program of tests/ prints with a rank on each core of *machine*."""
    cores = ["c-" + "-".join(map(str, core)) for core in itertools.product(*(range(n.count) for n in machine.levels))]
    hosts = folder / "hosts.txt"
    hosts.write_text("".join(f"{core}\n" for core in cores))
    subprocess.run(["smpicc", "-o", folder / program, ROOT / "tests" / f"{program}.c"], check=True)
    described, variables = platform(machine, hosts, folder)
    command = ["smpirun", *wrapper(variables), "-np", str(len(cores)), "-platform", described, "-hostfile", "hosts.txt"]
    command += [*options_of(machine, "smpi-openmpi", {}), "--log=root.thres:critical", f"./{program}"]
    return must(finish(command, cwd=folder, timeout=timeout)).stdout


def test_hundreds_of_long_messages_to_two_cores_do_not_end_the_simulation(tmp_path: Path) -> None:
    """SimGrid 3.32's solver adds up the weights of messages on a link; rounding errors made it abort."""
    assert on_all_cores(Configuration(ROOT / "config").machine("orfeo-epyc"), "crowd", tmp_path, 120) == "done\n"


def memory_mb(machine: Machine, collective: str, algorithm: str, folder: Path) -> float:
    """Return the memory (MB) of a simulation of a call of 8 B on 256 ranks."""
    simulator = Simulator(Configuration(ROOT / "config"), 1)
    cell = simulator._cell(machine, Request(collective, algorithm, "core", 256, (8, 8)))
    command = [*prepare(machine, cell, cell.place(machine), folder), "-f", "-i", "1", "-x", "0", "-m", "8:8"]
    variables = environment(machine, cell, cell.selection.library, dict(os.environ), folder)
    return execute(command, 120, io.StringIO(), variables, folder).peak_memory_mb


def test_an_alltoall_keeps_nothing_for_each_pair_of_ranks(tmp_path: Path) -> None:
    """With 720 bytes for each, it took 105 MB instead of 57, and would take 12 GB more on 4,096 ranks."""
    machine = with_level(machine_of(), "node", count=32)
    few, all_pairs = (memory_mb(machine, *how, tmp_path) for how in (("bcast", "linear"), ("alltoall", "pairwise")))
    assert all_pairs < 1.8 * few


def test_an_interface_that_was_full_is_free_again_when_its_messages_have_left(tmp_path: Path) -> None:
    """24 messages leave at once, and finish at once; a message a second later is alone."""
    machine = machine_of(gap_us={"node": 1.0}, send_us=[[1, 0.0]])
    assert float(on_all_cores(machine, "burst", tmp_path, 60)) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("interface_gb_s", "together_us"), [(10.0, 2 * 104.86), (16.0, 2 * 65.54), (40.0, 104.86)])
def test_a_core_receives_from_another_node_as_fast_as_the_interface(
    interface_gb_s: float, together_us: float, tmp_path: Path
) -> None:
    """Two messages, each of 10 GB/s at most, to one core."""
    machine = with_level(machine_of(), "node", shared_gb_s=interface_gb_s)
    assert float(on_all_cores(machine, "incast", tmp_path, 60)) == pytest.approx(together_us, rel=0.03)


def test_an_eager_message_crosses_the_border_of_a_cache_twice() -> None:
    """As above, with a cache in each socket: the lines of the receiver's buffer move to the sender and back."""
    slow = with_level(machine_of(share_first={"socket": 1.0}), "socket", shared_gb_s=0.01)
    assert took(slow, 8, 1000, collective="alltoall") == pytest.approx(2 * 16 * 100, rel=0.2)
