"""The meaning of words in headers and file names: fields, units, collectives, algorithms, mappings."""

from __future__ import annotations

import re

from collstudy.sources.importing.strict import listed
from collstudy.study.catalogue import Catalogue

#: Words of headers (lower case, letters and digits only, without units) -> field.
FIELDS = {
    "algorithm": "algorithm", "algo": "algorithm", "alg": "algorithm", "algorithmname": "algorithm",
    "algorithmid": "algorithm", "algid": "algorithm", "algoid": "algorithm", "nr": "processes", "nn": "nodes", "mapping": "mapping",
    "allocation": "mapping", "mapby": "mapping", "map": "mapping", "binding": "mapping", "processes": "processes",
    "process": "processes", "proc": "processes", "procs": "processes", "np": "processes", "ranks": "processes",
    "cores": "processes", "p": "processes", "tasks": "processes", "processors": "processes", "nodes": "nodes",
    "size": "size_bytes", "messagesize": "size_bytes", "msgsize": "size_bytes", "bytes": "size_bytes", "sizebytes": "size_bytes",
    "message": "size_bytes", "msg": "size_bytes", "length": "size_bytes",
    "messagelength": "size_bytes", "messagebytes": "size_bytes", "msgbytes": "size_bytes", "datasize": "size_bytes", "msize": "size_bytes",
    "latencyus": "latency_us", "runtime": "latency_us", "iterations": "iterations",
    "iters": "iterations", "repetitions": "iterations", "launch": "launch", "run": "launch", "repetition": "launch",
    "ppn": "processes_per_node", "rankspernode": "processes_per_node", "processespernode": "processes_per_node",
    "taskspernode": "processes_per_node", "procspernode": "processes_per_node", "nodesxppn": "processes",
    "bandwidth": "bandwidth_mb_s", "bw": "bandwidth_mb_s", "mbs": "bandwidth_mb_s",
    "segmentsize": "segment_bytes", "segsize": "segment_bytes", "segment": "segment_bytes", "seg": "segment_bytes",
    "fanout": "fanout", "chainfanout": "fanout", "treefanout": "fanout", "radix": "radix", "knomialradix": "radix",
    "maxrequests": "max_requests", "core1": "from_core", "corea": "from_core", "core2": "to_core",
    "coreb": "to_core", "us": "latency_us", "usec": "latency_us", "ns": "latency_us", "ms": "latency_us",
    "nanoseconds": "latency_us", "microseconds": "latency_us", "milliseconds": "latency_us", "seconds": "latency_us",
}  # fmt: skip
#: A time, its mean or its bounds, in any order of the words: latency, avg_latency, t_min.
_TIME = re.compile(
    r"(?:t|lat|latency|time)(?P<behind>avg|average|mean|min|minimum|max|maximum)|lat|latency|time"
    r"|(?P<before>avg|average|mean|min|minimum|max|maximum)(?:lat|latency|time)?"
)
#: Words before and after a count: number_processes, num procs, nranks, np_total.
_COUNT = re.compile(r"^(total)?(numberof|number|numof|num|n)?(mpi)?|total$")
#: Headers of a column that names the collective.
COLLECTIVE = ("collective", "operation", "type", "benchmark", "test")
#: Headers of a column that has the number of elements of a message.
ELEMENTS = (
    "count", "counts", "sendcount", "recvcount", "msgcount", "messagecount", "elementcount", "elements", "elems", "numelements",
    "numelems", "nelements", "nelems", "nelem",
)  # fmt: skip
#: Other words for the library's own selection; Open MPI lists it as "ignore".
DEFAULT = ("ignore", "standard", "def", "baseline", "base")
_UNIT = re.compile(
    r"(?:^|[(\[ _])([num\u00b5]?s|[num\u00b5]?secs?|(?:nano|micro|milli)?seconds?)[)\]]?\s*$", re.IGNORECASE
)
_SIZE_UNIT = re.compile(r"[(\[ _](bytes?|B|KiB|KB|MiB|MB)[)\]]?\s*$", re.IGNORECASE)
_RATE = re.compile(r"[(\[ _]MB[/_ ]?p?s[)\]]?\s*$", re.IGNORECASE)
#: Greek mu equals the micro sign if case is ignored.
_PREFIXES = {
    "n": "n",
    "u": "u",
    "\u00b5": "u",
    "\u03bc": "u",
    "m": "m",
    "nano": "n",
    "micro": "u",
    "milli": "m",
    "": "",
}


def plain(text: str) -> str:
    """Reduce a text to lower-case letters and digits."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def field_of(name: str) -> str | None:
    """Return the field that a column's name denotes; None if unknown."""
    # The corner of a wide table: size/ranks, size \\ ranks.
    corner = re.fullmatch(r"\w+\s*[/\\|]\s*\w+", name) and plain(name) not in FIELDS
    name = re.split(r"\s*[/\\|]", name)[0] if corner else name
    bare = _SIZE_UNIT.sub("", _RATE.sub("", name))
    found = _time(plain(without_unit(bare))) or FIELDS.get(plain(without_unit(bare)), FIELDS.get(plain(name)))
    counted = FIELDS.get(_COUNT.sub("", plain(name)))
    return found or (counted if counted in ("processes", "nodes") else None)


def _time(word: str) -> str | None:
    """Return the field of a time that a word without its unit denotes; None for other words."""
    found = _TIME.fullmatch(word)
    bound = found and (found["behind"] or found["before"] or "")[:3]
    return None if bound is None else f"{bound}_latency_us" if bound in ("min", "max") else "latency_us"


def unit_of(name: str) -> str | None:
    """Return the unit of time in a column's name; None if there is none."""
    found = None if _RATE.search(name) else _UNIT.search(name)
    return _PREFIXES[re.sub(r"s(ec(ond)?s?)?$", "", found.group(1).lower())] + "s" if found else None


def without_unit(name: str) -> str:
    """Return the name without a unit of time at its end."""
    return _UNIT.sub("", name)


def in_bytes(name: str) -> bool:
    """Return whether a column's name ends with a unit of size."""
    return _SIZE_UNIT.search(name) is not None


def size_unit_of(name: str) -> str | None:
    """Return KiB or MiB if a column's name has such a unit of size; otherwise None."""
    found = _SIZE_UNIT.search(name)
    return f"{found.group(1)[0].upper()}iB" if found and found.group(1)[0] in "KkMm" else None


def collective_in(text: str, catalogue: Catalogue) -> str | None:
    """Return the longest name of a collective in a text (also before capitals, bcastEPYC, and as all_reduce or All-to-All), other than
    in the name of an algorithm (bcast_scatter_allgather); None if there is none.
    """
    text = re.sub(r"(?<=[a-z])(?=[A-Z]{2})", "_", text).lower().replace("broadcast", "bcast")
    text = re.sub(r"(?<![a-z])all[-_ ](?=reduce|gather|to)", "all", text)
    text = re.sub(r"(?<=allto)[-_ ](?=all)", "", text)
    text = re.sub(r"reduce[- ]?(?=scatter)", "reduce_", text)
    found = [name for name in catalogue.algorithms if re.search(rf"(^|[^a-z]){name}([^a-z]|$)", text)]
    for name in found:
        others = {other for other in found if other != name}
        for algorithm, entry in catalogue.algorithms[name].items():
            for words in (algorithm, str(entry.get("mpich", {}).get("algorithm", algorithm))):
                written = re.search(re.escape(words).replace("_", "[-_ ]?"), text)
                if others and written and all(other in words for other in others):
                    return name
    return max(found, key=len) if found else None


def mapping_named(text: str, catalogue: Catalogue) -> str:
    """Return the mapping that a text such as "by core", "map-by-node" or "Socket" names; "?" if none."""
    word = plain(text).removeprefix("map").removeprefix("by") or "?"
    return next((name for name in catalogue.mappings if plain(name) == word), "?")


def algorithm_like(text: str, collective: str, catalogue: Catalogue) -> str | None:
    """Return the algorithm that a text probably means: the default, or the only one of Open MPI's with this word in its name (ring:
    double_ring); None if there is none.
    """
    word = plain(text)
    if word in DEFAULT:
        return "default"
    if word == "basiclinear" and "linear" in catalogue.algorithms[collective]:
        return "linear"
    alike = {
        name
        for name, entry in catalogue.algorithms[collective].items()
        if "algorithm" in entry.get("openmpi", {}) and word in (*name.split("_"), plain(name.replace("binary", "bin")))
    }
    return alike.pop() if len(alike) == 1 else None


def algorithm_named(text: str, collective: str, catalogue: Catalogue) -> str | None:
    """Return the catalogue's algorithm with this name, label or name in Open MPI; None if there is none."""
    if not plain(text):
        return None
    for name, entry in catalogue.algorithms[collective].items():
        words = [name, entry["label"], *listed(entry.get("openmpi", {}).get("algorithm", []))]
        if plain(text) in {plain(word) for word in words} | {plain(word).removesuffix("tree") for word in words}:
            return name
    if plain(text).endswith("tree"):
        return algorithm_named(plain(text).removesuffix("tree"), collective, catalogue)
    return None
