#!/usr/bin/env python3
"""Start mpirun with the tuning file of this folder that matches the job's shape: nodes, ranks on each, and mapping.

Usage as mpirun: mpirun-tuned [options of mpirun] program [arguments]. shapes.json, beside this file, lists the measured shapes.
Without a file for the shape, it prints one line and starts mpirun with unchanged arguments. TUNED_MPIRUN names another mpirun.
It needs only Python 3.6, so that it can be copied with the folder.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

RANKS = ("-n", "-np", "-c", "--n", "--np")
PER_NODE = ("-N", "-npernode", "--npernode")
HOSTS = ("-H", "-host", "--host")
HOST_FILES = ("-hostfile", "--hostfile", "-machinefile", "--machinefile")
MAPPING = ("-map-by", "--map-by")
RANKING = ("-rank-by", "--rank-by", "rmaps_base_ranking_policy", "rmaps_default_ranking_policy")
#: Options and parameters of the host file that counts where neither options nor a resource manager name hosts.
DEFAULT_HOST_FILES = (
    "-default-hostfile", "--default-hostfile", "orte_default_hostfile", "prte_default_hostfile",
)  # fmt: skip
#: Variables of jobs whose hosts are not read, and the resource manager that sets them.
OTHER_JOBS = {"PBS_JOBID": "PBS", "LSB_JOBID": "LSF", "PE_HOSTFILE": "Grid Engine"}
#: Options with two values.
TWO = ("-mca", "--mca", "--prtemca", "--pmixmca", "-gmca", "--gmca", "--gprtemca", "--gpmixmca")
#: Names of options with one value, which must not be mistaken for the program.
ONE = (
    "am", "app", "app-pmix-prefix", "bind-to", "cartofile", "cf", "cpu-list", "cpu-set", "cpus-per-proc",
    "cpus-per-rank", "debugger", "default-hostfile", "display", "dvm", "dvm-uri", "gpu-support", "hnp", "keepalive",
    "launch-agent", "max-restarts", "max-vm-size", "namespace", "npersocket", "ompi-server", "output",
    "output-directory", "output-filename", "path", "personality", "pid", "pmix-prefix", "ppr", "prefix",
    "preload-files", "pset", "rank-by", "rankfile", "report-events", "report-pid", "report-uri", "rf",
    "runtime-options", "singleton", "spawn-timeout", "stdin", "timeout", "tmpdir", "tune", "unset-env", "wd",
    "wdir", "with-ft", "x", "xml-file", "xterm",
)  # fmt: skip
#: Names of options that place ranks in a way that no other option shows.
PLACING = (
    "app", "bycore", "bynode", "byslot", "bysocket", "cpu-list", "cpu-set", "cpus-per-proc", "cpus-per-rank",
    "nolocal", "npersocket", "pernode", "ppr", "rankfile", "rf", "use-hwthread-cpus",
)  # fmt: skip
#: Beginnings of modifiers of --map-by (after a colon) with which ranks share cores, or nodes are not filled one after the other.
ODD = ("hwtcpus", "pe-list", "span")
POLICIES = ("rmaps_base_mapping_policy", "rmaps_default_mapping_policy")
#: Values of --map-by -> level that varies fastest, as in `cycle` of config/mappings.yaml; empty: cores in their order.
CYCLES = {
    "core": "",
    "slot": "",
    "socket": "socket",
    "package": "socket",
    "node": "node",
    "numa": "numa",
}


class Unknown(Exception):
    """The reason why the shape of a job is unknown."""


def options(words):
    """Return the options of mpirun before the program as a list of (name, value)."""
    found, at = [], 0
    while at < len(words) and words[at].startswith("-"):
        name, given, value = words[at].partition("=")
        if name in TWO:
            found.append((" ".join(words[at + 1 : at + 2]), " ".join(words[at + 2 : at + 3])))
            at += 3
        elif given and name.startswith("--"):
            found.append((name, value))
            at += 1
        elif name in RANKS + PER_NODE + HOSTS + HOST_FILES + MAPPING or name.lstrip("-") in ONE:
            found.append((name, " ".join(words[at + 1 : at + 2])))
            at += 2
        else:
            found.append((name, ""))
            at += 1
    if ":" in words[at:]:
        raise Unknown("several programs")
    return found


def number(text):
    """Convert a text to an integer of at least 1. Raises Unknown."""
    if not text.isdigit() or int(text) < 1:
        raise Unknown(f"{text!r} is not a number of ranks")
    return int(text)


def add_host_file(path, slots):
    """Add the hosts of a host file to *slots*. Raises Unknown."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise Unknown(f"host file {path}: {problem.strerror}") from None
    for words in (line.split("#")[0].split() for line in lines):
        if words:
            said = " ".join(words[1:])
            # `max-slots` counts only alone.
            count = re.search(r"(?<![\w-])(?:slots|count|cpu)\s*=\s*(\d+)", said)
            count = count or re.search(r"slots\s*=\s*(\d+)", said)
            known = slots.get(words[0], 0)
            slots[words[0]] = None if count is None or known is None else known + int(count.group(1))


def slots_of(found, environment):
    """Return {host: slots} in the order of the hosts (slots None: as many as cores); only this computer if no hosts are named."""
    slots = {}
    allocated = environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST")
    for name, value in found:
        if name in HOSTS:
            for one in value.split(","):
                host, _, count = one.partition(":")
                slots[host] = (
                    None if count in ("*", "auto") else (slots.get(host) or 0) + (number(count) if count else 1)
                )
        if name in HOST_FILES:
            add_host_file(value, slots)
    if slots:
        return slots
    if not allocated:
        for variable, manager in OTHER_JOBS.items():
            if variable in environment:
                raise Unknown(f"the hosts of a job of {manager} are not read; name them by --host or --hostfile")
        for path in default_host_files(found, environment):
            add_host_file(path, slots)
        return slots or {"localhost": None}
    counts = []
    for one in environment.get("SLURM_TASKS_PER_NODE", "").split(","):
        part = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", one)
        if not part:
            raise Unknown("the Slurm job does not define its tasks per node")
        counts += [int(part.group(1))] * int(part.group(2) or 1)
    return {f"node {i} of the job": count for i, count in enumerate(counts)}


def default_host_files(found, environment):
    """Return the default host file that an option or a variable names, as a list; [] without one."""
    named = [value for name, value in found if name in DEFAULT_HOST_FILES]
    named += [
        environment[k] for k in ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile") if k in environment
    ]
    return named[:1]


def check_ranking(ranked, cycle, major):
    """Check that ranks follow each other as in the mapping: from Open MPI 5 on only with --rank-by slot (*ranked*). Raises Unknown."""
    order = (ranked or "").split(":")[0].lower()
    if major >= 5 and cycle in ("socket", "numa"):
        if order != "slot":
            raise Unknown(
                f"Open MPI {major} fills one {cycle} after the other; for the measured order add --rank-by slot"
            )
    elif order and cycle is not None and CYCLES.get(order) != cycle:
        raise Unknown(f"no rules for --rank-by {ranked} with another --map-by")


def shape_of(words, environment, major):
    """Return nodes, ranks and cycle of a command for a release; cycle is None if the command names no mapping. Raises Unknown."""
    found = options(words)
    given = dict(found)
    slots = slots_of(found, environment)
    ranks = next((number(given[name]) for name in RANKS if name in given), None)
    per_node = next((number(given[name]) for name in PER_NODE if name in given), None)
    policy = next((given[name] for name in MAPPING + POLICIES if name in given), None)
    policy = policy or next(
        (environment[k] for k in ("OMPI_MCA_" + POLICIES[0], "PRTE_MCA_" + POLICIES[1]) if k in environment), None
    )
    cycle = "" if per_node else None  # -N 4 is --map-by ppr:4:node
    placing = [name for name, _ in found if name.lstrip("-") in PLACING]
    if placing:
        raise Unknown(f"no rules for {placing[0]}")
    if policy:
        kind = policy.split(":")
        resource = re.fullmatch(r"ppr:(\d+):(\w+)(:.*)?", policy)
        if resource and resource.group(2) == "node":
            per_node, cycle = number(resource.group(1)), ""
        elif kind[0].lower() in CYCLES:
            cycle = CYCLES[kind[0].lower()]
        elif kind[0]:
            raise Unknown(f"no rules for --map-by {policy}")
        if any(word.lower().startswith(ODD) for word in kind[1:]):
            raise Unknown(f"no rules for --map-by {policy}")
        if any(word.lower().startswith("pe=") and word[3:] != "1" for word in kind):
            raise Unknown(f"no rules for --map-by {policy}, with several cores for each rank")
    check_ranking(next((value for name, value in found if name in RANKING), None), cycle, major)
    counts = list(slots.values())
    if per_node:
        ranks = ranks or per_node * len(counts)
        nodes = math.ceil(ranks / per_node)
    elif len(counts) == 1:
        nodes, ranks = 1, ranks or counts[0] or cores(os.sched_getaffinity(0))
    elif None in counts:
        raise Unknown(f"the host file does not give the slots of its {len(counts)} hosts")
    else:
        ranks = ranks or sum(counts)
        nodes = min(ranks, len(counts)) if cycle == "node" else filled(ranks, counts)
    if nodes > len(counts) or ranks > sum(count or ranks for count in counts):
        raise Unknown(f"{ranks} ranks do not fit on {len(counts)} hosts")
    return nodes, ranks, cycle


def cores(processors, root="/sys/devices/system/cpu"):
    """Return the number of cores to which *processors* belong, of which several may be threads of one."""
    found = set()
    for processor in processors:
        folder = Path(f"{root}/cpu{processor}/topology")
        try:
            found.add((folder / "physical_package_id").read_text() + (folder / "core_id").read_text())
        except OSError:
            found.add(processor)
    return len(found)


def filled(ranks, counts):
    """Return the number of nodes that *ranks* ranks use if they fill one node after the other."""
    nodes = 0
    while ranks > 0 and nodes < len(counts):
        ranks -= counts[nodes]
        nodes += 1
    return nodes


def choice(shapes, nodes, ranks, cycle, major):
    """Return the entry of shapes.json for a shape. Raises Unknown if the shape was not measured with a release of this number."""
    if cycle is None:  # mpirun's own mapping depends on its version and the number of ranks
        mappings = sorted({entry["mapping"] for entry in shapes})
        raise Unknown("--map-by is missing; measured: " + ", ".join(mappings))
    shapes = [entry for entry in shapes if ([*entry["cycle"], ""])[0] == cycle]
    if cycle == "node" and major >= 5:
        # Open MPI 4 also alternates between the sockets of each node.
        exact = [entry for entry in shapes if entry["cycle"] == ["node"]]
        if shapes and not exact:
            raise Unknown(f"Open MPI {major} fills the sockets of a node one after the other; measured: in turn")
        shapes = exact
    fits = []
    for entry in shapes:
        low, high = entry["nodes"].get(str(nodes), (1, 0))
        if low <= ranks <= high:
            fits.append(entry)
    mappings = sorted({entry["mapping"] for entry in fits})
    if len(mappings) > 1:
        raise Unknown(f"--map-by {cycle or 'core'} may be one of the measured mappings {', '.join(mappings)}")
    if fits:
        return fits[0]
    raise Unknown(f"{ranks} ranks on {nodes} node{'s' * (nodes > 1)} by {cycle or 'core'} were not measured")


def release(mpirun):
    """Return the version of Open MPI. Raises Unknown for another library."""
    # Python 3.6 has no `text`.
    done = subprocess.run([mpirun, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    found = re.search(r"Open MPI\D*(\d+\.[\d.]*\d)", done.stdout)
    if not found:
        raise Unknown(f"{mpirun} is not Open MPI's mpirun")
    return found.group(1)


def launcher(environment):
    """Return the mpirun to start: TUNED_MPIRUN, or the first one on PATH that is not this file."""
    named = environment.get("TUNED_MPIRUN")
    if named:
        return shutil.which(named) or sys.exit(f"mpirun-tuned: TUNED_MPIRUN is {named}, which is not a program")
    for folder in environment.get("PATH", "").split(os.pathsep):
        found = shutil.which("mpirun", path=folder)
        if found and not os.path.samefile(found, __file__):
            return found
    sys.exit("mpirun-tuned: no mpirun on PATH")


def measured(path):
    """Return the content of shapes.json. Raises Unknown if it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise Unknown(f"{path.name} cannot be read: {problem}") from None


def main(words, environment):
    """Replace this process by mpirun."""
    folder = Path(__file__).resolve().parent
    mpirun, arguments = launcher(environment), []
    try:
        shapes = measured(folder / "shapes.json")
        version = release(mpirun)
        major = version.split(".")[0]
        entry = choice(shapes, *shape_of(words, environment, int(major)), int(major))
        known = entry["arguments"].get(major)
        if known is None:
            raise Unknown(f"no file for Open MPI {major}")
        first = entry.get("from", {}).get(major, "0")
        if [int(part) for part in version.split(".")] < [int(part) for part in first.split(".")]:
            raise Unknown(f"{entry['file']} needs Open MPI {first}")
        arguments = [word.replace("{folder}", str(folder)) for word in known]
        if environment.get("TUNED_VERBOSE"):
            print("mpirun-tuned: " + entry["file"], file=sys.stderr)
    except Unknown as why:
        print(f"mpirun-tuned: started without a tuning file: {why}", file=sys.stderr)
    sys.stderr.flush()
    os.execvp(mpirun, [mpirun, *arguments, *words])


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
