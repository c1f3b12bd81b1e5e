"""Determine the Slurm job of this process by asking Slurm, because the environment is unreliable.

snakemake-executor-plugin-slurm-jobstep 0.6.1 removes most SLURM_* variables from a block's environment (mpirun then ends with
"unable to find SLURM_NODELIST"), and variables inherited from another job or a login shell may be stale (with a stale
SLURM_MEM_PER_CPU mpirun waits for its daemons and hangs). Therefore all of them are dropped, and those that mpirun and srun
need are set from `scontrol show job`.
"""

from __future__ import annotations

import datetime
import itertools
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from collstudy.base.commands import SITES_SLURM, ask
from collstudy.base.errors import StudyError

#: Variables of a job, job step or other MPI process, which must not reach the launcher.
FOREIGN = re.compile(r"(SLURM|SRUN|SBATCH|SALLOC|PMI|PMI2|PMIX|PRTE|OMPI|OPAL|ORTE)_")
#: The smallest number of a step that Slurm itself starts.
SPECIAL_STEPS = 0xFFFFFFF0
#: One `Key=value` of scontrol's output.
FIELD = re.compile(r"(?:^|(?<=\s))([A-Z][\w:/]*)=(.*?)(?=\s+[A-Z][\w:/]*=|\s*$)", re.DOTALL)
#: Exceptions: variables that a user or a site sets on purpose.
KEPT = re.compile(
    rf"SLURM_({SITES_SLURM}|SUBMIT_DIR$|SUBMIT_HOST$)|(OMPI|PRTE|PMIX)_MCA_|(OMPI|PRTE)_ALLOW_RUN_AS_ROOT"
    r"|(OPAL|OMPI|PMIX|PRTE)_PREFIX$"
)


@dataclass(frozen=True)
class Job:
    """A running job; `cpus` is the number of allocated processors on each of its `nodes`, `batch` is False for salloc and srun.

    `hostnames`: what the nodes call themselves, if that is known; Slurm may have other names for them.
    """

    id: str
    state: str
    nodes: tuple[str, ...]
    cpus: tuple[int, ...]
    partition: str
    end: datetime.datetime | None
    batch: bool = True
    hostnames: tuple[str, ...] = ()


def short(host: str) -> str:
    """Return the host name without its domain: some launchers print the domain, others do not."""
    return host.split(".")[0]


def split_hostlist(text: str) -> Iterator[str]:
    """Split a host list at the commas outside brackets. Raises StudyError if brackets do not match."""
    depth = start = 0
    for index, character in enumerate(text):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    if depth:
        raise StudyError(f"host list {text!r}: brackets do not match")
    yield text[start:]


def expand_hostlist(text: str) -> list[str]:
    """Return the host names of a Slurm host list, in its order: `n[001-003,7],m1` is n001, n002, n003, n7, m1."""
    names = []
    for part in split_hostlist(text.strip()):
        names += _expand(part.strip(), text)
    return names


def _expand(part: str, text: str) -> list[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        if not part or not re.fullmatch(r"[\w.-]+", part):
            raise StudyError(f"host list {text!r}: {part!r} is not a host name")
        return [part]
    inside, _, tail = rest.partition("]")
    tails = _expand(tail, text) if tail else [""]
    names = []
    for piece in inside.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", piece)
        if not found or (found[2] and int(found[2]) < int(found[1])):
            raise StudyError(f"host list {text!r}: {piece!r} is not a range of numbers")
        first, last = found[1], found[2] or found[1]
        for number in range(int(first), int(last) + 1):
            names += [f"{head}{number:0{len(first)}d}{end}" for end in tails]
    return names


def compress_counts(counts: tuple[int, ...]) -> str:
    """Return numbers in Slurm's short form: 24, 24, 12 is `24(x2),12`."""
    groups = ((count, len(list(same))) for count, same in itertools.groupby(counts))
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in groups)


def expand_ranges(text: str) -> list[int]:
    """Return the numbers of a list of ranges such as `0-3,8`."""
    numbers = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def parse_job(text: str) -> Job:
    """Parse the output of `scontrol -d -o show job ID`. Raises StudyError if that is not possible."""
    fields: dict[str, str] = {}
    processors: dict[str, int] = {}
    nodes_of_group = ""
    # A value may contain blanks (a comment, a path): it ends where the next `Key=` begins.
    for key, value in FIELD.findall(text):
        if key == "Nodes":
            nodes_of_group = value
        elif key == "CPU_IDs":
            processors |= dict.fromkeys(expand_hostlist(nodes_of_group), len(expand_ranges(value)))
        else:
            fields.setdefault(key, value.strip())
    if "JobId" not in fields or "JobState" not in fields:
        raise StudyError(f"scontrol show job: cannot parse {text[:200]!r}")
    node_list = fields.get("NodeList", "")
    nodes = tuple(expand_hostlist(node_list)) if node_list not in ("", "(null)") else ()
    if nodes and not processors:
        # Output without -d does not list processors by node: assume the same number on each node.
        processors = dict.fromkeys(nodes, int(fields.get("NumCPUs", "1").split("-")[0]) // len(nodes))
    end = fields.get("EndTime", "Unknown")
    return Job(
        id=fields["JobId"],
        state=fields["JobState"],
        nodes=nodes,
        cpus=tuple(processors.get(node, 1) for node in nodes),
        partition=fields.get("Partition", ""),
        end=None if end in ("Unknown", "NONE", "N/A") else datetime.datetime.fromisoformat(end),
        batch=fields.get("BatchFlag") != "0",
    )


def record_of(number: str, text: str) -> str:
    """Return the record of a job from scontrol's output, which may have all tasks of its array, or all parts of a heterogeneous job."""
    records = re.split(r"^(?=JobId=)", text, flags=re.MULTILINE)
    return next((record for record in records if re.match(rf"JobId={number}\b", record)), text)


def host_names(nodes: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the nodes with these names in Slurm call themselves."""
    printed = ask(["scontrol", "-o", "show", "node", ",".join(nodes)], environment=environment).stdout
    found = dict(re.findall(r"^NodeName=(\S+) .*?\bNodeHostName=(\S+)", printed, re.MULTILINE))
    return tuple(found.get(node, node) for node in nodes)


def current_job(environment: Mapping[str, str], host: str) -> Job | None:
    """Ask Slurm for the job of this process; return None outside a job.

    A stale job number counts as outside: that job is not running, or *host* is neither one of its nodes nor where salloc was started,
    whose commands usually run there.
    """
    number = environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOBID")
    if not number:
        return None
    try:
        done = subprocess.run(
            ["scontrol", "-d", "-o", "show", "job", number],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            env={**environment, "SLURM_TIME_FORMAT": "standard"},
            check=False,
        )
    except FileNotFoundError:
        raise StudyError(
            f"SLURM_JOB_ID is {number}, but scontrol, which lists the job's nodes, is not on PATH"
        ) from None
    except subprocess.TimeoutExpired:
        raise StudyError(f"scontrol show job {number} did not answer within 60 s") from None
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        if "Invalid job id" in said:
            return None  # Slurm has forgotten it
        raise StudyError(f"scontrol show job {number}: {said}")
    job = parse_job(record_of(number, done.stdout))
    job = replace(job, hostnames=host_names(job.nodes, environment) if job.nodes else ())
    hosts = [*job.nodes, *job.hostnames, *([] if job.batch else [environment.get("SLURM_SUBMIT_HOST", "")])]
    if job.state not in ("RUNNING", "COMPLETING") or short(host) not in map(short, hosts):
        return None
    return job


def why_ending(number: str, environment: Mapping[str, str]) -> str:
    """Return why Slurm is ending the job *number* (time limit, scancel, node failure); "" if it is not."""
    settings = {**environment, "SLURM_TIME_FORMAT": "standard"}
    try:
        job = parse_job(record_of(number, ask(["scontrol", "-o", "show", "job", number], 20, settings).stdout))
    except StudyError:
        return ""
    if job.state != "RUNNING":
        return f"Slurm is ending job {number} ({job.state})"
    if job.end is not None and job.end <= datetime.datetime.now():
        return f"Slurm is ending job {number} (time limit)"
    return ""


#: Shell command that prints facts about a node: state that affects timings, kernel and processor.
DESCRIBE = (
    "cd /sys/devices/system/cpu; r() { cat $1 2>/dev/null || echo; };"
    ' echo "$(uname -n)|$(r cpu0/cpufreq/scaling_governor)|$(r smt/control)|$(uname -r)|'
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)\""
)


def describe_nodes(hosts: list[str], environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return governor, SMT state, kernel and processor of each host, as far as readable; runs srun once per block."""
    command = ["srun", f"-N{len(hosts)}", f"-w{','.join(hosts)}", "--ntasks-per-node=1", f"-n{len(hosts)}"]
    found = {}
    for line in ask([*command, "sh", "-c", DESCRIBE], environment=environment).stdout.splitlines():
        parts = line.split("|", 4)
        if len(parts) == 5:
            keys = ("governor", "smt", "kernel", "processor")
            found[parts[0]] = {key: value for key, value in zip(keys, parts[1:], strict=True) if value}
    return found


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables of an outer job, job step or MPI process."""
    return {key: value for key, value in environment.items() if not FOREIGN.match(key) or KEPT.match(key)}


def launcher_environment(environment: Mapping[str, str], job: Job) -> dict[str, str]:
    """Return an environment in which mpirun and srun find all of the job's nodes, with one slot per allocated processor.

    Slots follow the allocation instead of the number of tasks requested from sbatch: rank files can then use every core, and
    one block can run launches of different sizes.
    """
    # A plain list, which every version of Slurm and Open MPI can read.
    nodes, counts = ",".join(job.nodes), compress_counts(job.cpus)
    # In a step of srun, such as `srun --pty bash`, launches would wait until it ends. Steps of batch scripts and salloc have high numbers.
    step = environment.get("SLURM_STEP_ID", "")
    overlap = {"SLURM_OVERLAP": "1"} if step.isdecimal() and int(step) < SPECIAL_STEPS else {}
    return (
        clean_environment(environment)
        | overlap
        | {
            "SLURM_JOB_ID": job.id,
            "SLURM_JOBID": job.id,
            "SLURM_JOB_NODELIST": nodes,
            "SLURM_NODELIST": nodes,
            "SLURM_JOB_NUM_NODES": str(len(job.nodes)),
            "SLURM_NNODES": str(len(job.nodes)),
            "SLURM_JOB_CPUS_PER_NODE": counts,
            "SLURM_TASKS_PER_NODE": counts,
        }
    )
