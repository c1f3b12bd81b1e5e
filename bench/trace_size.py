"""Processing time of a large trace: python bench/trace_size.py [calls [ranks]]  (default: 1000000 calls of 64 ranks).

Writes the files of the ranks like the trace library (sends, receives, waits, and an allreduce now and then), converts them to the
stored table, and analyses it: operations, sizes, times, messages and their figures. Prints the wall time (s) and the largest
memory of any process.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

from collstudy.launch import tracefile  # noqa: E402

#: OP_LIST of workflow/native/trace/operations.h.
LIST = 0xFFFF
ANALYSE = """
suppressPackageStartupMessages(library(collanalysis))
inside <- asNamespace("collanalysis")
folder <- commandArgs(TRUE)[1]
trace <- inside$read_trace(folder)
applications <- list(list(label = "Generated", trace = trace))
print(inside$summarise_operations(trace))
invisible(list(inside$summarise_sizes(trace), inside$summarise_time(trace)))
for (plot in list(
  inside$plot_operations(applications, "operations"), inside$plot_operations(applications, "sent_bytes"),
  inside$plot_message_sizes(applications), inside$plot_time(applications)
)) ggplot2::ggsave(file.path(folder, "figure.svg"), plot, width = 9, height = 5)
"""


def write_rank(path: Path, rank: int, ranks: int, calls: int) -> None:
    """Write a file with *calls* calls, which exchange data with the neighbours on a ring."""
    number = {name: index for index, name in enumerate(tracefile.operation_names(), start=1)}
    names = " ".join(tracefile.operation_names()) + " "
    header = tracefile.HEADER.pack(
        b"COLTRACE", tracefile.VERSION, tracefile.RECORD.size, rank, ranks, int(time.time()), b"bench", names.encode()
    )
    up, down, now, request = (rank + 1) % ranks, (rank - 1) % ranks, 0, 0
    records = [header.ljust(tracefile.HEADER_BYTES, b"\0")]

    def add(name: str, listed: tuple[int, ...] = (), to: int = -1, source: int = -1, **given: int) -> None:
        nonlocal now
        now += 10_000
        records.append(
            tracefile.RECORD.pack(
                number[name], 0, len(listed), 0, -1, to, source, 0, 0, given.get("request", 0), given.get("sent", 0),
                given.get("received", 0), now, now + 2000, now // 2, now // 2 + 1000,
            )
        )  # fmt: skip
        if listed:
            slot = struct.pack(f"=HHI{len(listed)}q", LIST, 0, 0, *listed)
            records.append(slot.ljust(tracefile.RECORD.size, b"\0"))

    add("init")
    for index in range(calls - 2):
        match index % 16:
            case 15:
                add("allreduce", sent=8, received=8)
            case kind if kind % 3 == 0:
                request += 1
                add("irecv", source=down, received=4096, request=request)
            case kind if kind % 3 == 1:
                add("send", to=up, sent=4096 * (1 + index % 7))
            case _:
                add("wait", (request, -1, -1))
    add("finalize")
    path.write_bytes(b"".join(records))


def main() -> None:
    """Generate, collect and analyse a trace; print time and memory."""
    calls, ranks = (int(word) for word in (*sys.argv[1:], *("1000000", "64")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory(prefix="trace-size-") as name:
        folder = Path(name)
        for rank in range(ranks):
            write_rank(folder / f"rank-{rank:06d}.trace", rank, ranks, calls // ranks)
        start = time.monotonic()
        about = tracefile.collect(folder, ranks, folder / "calls.csv.gz")
        collected = time.monotonic()
        (folder / "about.json").write_text(json.dumps({"failure": "", "trace": about}))
        environment = {**os.environ, "R_LIBS": str(ROOT / ".study" / "R")}
        subprocess.run(["Rscript", "-e", ANALYSE, str(folder)], check=True, env=environment)
        ended = time.monotonic()
        size = (folder / "calls.csv.gz").stat().st_size
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"calls={about['calls']}\nranks={ranks}\ntable_mb={size / 1e6:.1f}\ncollect_s={collected - start:.1f}")
    print(f"analyse_s={ended - collected:.1f}\ntotal_s={ended - start:.1f}\nlargest_process_gb={memory / 1e6:.2f}")


if __name__ == "__main__":
    main()
