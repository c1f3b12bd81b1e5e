"""Write the folder `results/<study>/tuning/`: files for each MPI library, and how to use them (README.md)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collstudy.base.files import read_csv, write_atomically
from collstudy.launch import hydra, mpich
from collstudy.launch.rulesfile import rules_arguments
from collstudy.launch.toolchain import collectives_library, preloaded
from collstudy.study.catalogue import Catalogue
from collstudy.study.names import REDUCTIONS
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.tuning import nccl, trees
from collstudy.tuning.mpirun_tuned import CYCLES
from collstudy.tuning.rules import Placement, as_release_reads, han_default, own_version
from collstudy.tuning.writers import (
    han_rules,
    in_library,
    intel_variables,
    library_rules,
    openmpi_json,
    openmpi_rules,
    radix_line,
)

#: The launcher that selects a file by the job's shape, and the table that it reads.
LAUNCHER = Path(__file__).with_name("mpirun_tuned.py")
LAUNCHER_NAME, SHAPES_NAME = "mpirun-tuned", "shapes.json"
#: MPI libraries whose studies have files in the library's own format; all others have Open MPI's.
OWN_FORMAT = ("mpich", "impi", "nccl")
BUILT = "built by ./study setup; on another machine, build it there"


#: The first releases of Open MPI that read rules of version 2 (reads_version_2()), by their first number.
VERSION_2 = {"4": "4.1.8", "5": "5.0.7"}


def rules_path(folder: Path, mpi: str, placement: Placement) -> Path:
    """Return the path of the file for the study's own MPI library, which is checked and verified."""
    if mpi == "nccl":  # its lines distinguish numbers of nodes
        return folder / f"nccl-{placement.mapping}.csv"
    names = {"mpich": "mpich-{}.json", "impi": "intel-{}.sh"}
    return folder / names.get(mpi, "openmpi-{}.rules").format(placement.name)


def han_path(folder: Path, placement: Placement) -> Path:
    """Return the path of the file for Open MPI's coll/han, for placements that need one."""
    return folder / f"openmpi-han-{placement.name}.rules"


def _subtrees_path(folder: Path, placement: Placement) -> Path:
    """Return the path of the file for MPICH 5.1."""
    return folder / f"mpich-5.1-{placement.name}.json"


def _library_path(folder: Path, placement: Placement) -> Path:
    return folder / f"coll-{placement.name}.rules"


def header_of(study: dict[str, Any], placement: Placement, outside: str = "the library decides") -> list[str]:
    """Return comment lines with purpose and data, for formats that support comments; *outside*: what applies to other calls."""
    how = study["provenance"]
    kind = "simulated" if study["simulated"] else "measured"
    return [
        f"Study {study['name']}: {study['title']}",
        f"For: {study['machine']['label']}, {_placed(study, placement)}; no other placement.",
        f"Decided {datetime.now(UTC).date()} from {kind} latencies: {how['suite']} {how['suite_version']}, "
        f"{how['mpi']} {how['mpi_version']} {how['simulator']} {how['simulator_version']}".rstrip(),
        "Gains are those expected from the deciding data; tables/tuning-verification.csv has those of fresh launches.",
        f"Outside of the measured sizes and processes {outside}.",
    ]


def _placed(study: dict[str, Any], placement: Placement) -> str:
    """Return for which placement of ranks a file is: a mapping, or that of the program when it was traced."""
    if study.get("judged_by_runs"):
        return f"{study['program']['label']} on {study['program']['ranks']} ranks, launched as when it was traced"
    return f"mapping {placement.label}"


def emit(
    study: dict[str, Any], found: list[Placement], catalogue: Catalogue, folder: Path,
    numbers: dict[str, dict[str, int]] = NUMBERS, write_trees: Callable[[Placement, Path], None] | None = None,
    built: Path | None = None,
) -> set[Path]:  # fmt: skip
    """Write all files and README.md to *folder*; return the tuning files in it that are of an earlier definition of the study.

    *numbers* are Open MPI's algorithm numbers, *write_trees* writes the selection trees of the installed MPICH,
    and *built* is the folder of this project's programs for the study's MPI library.
    """
    mpi = study["provenance"]["mpi"]
    if mpi == "nccl":
        return files_in(folder) - _emit_nccl(study, found, catalogue, folder)
    written: set[Path] = set()
    for placement in found:
        if mpi == "mpich" and write_trees:
            own = rules_path(folder, mpi, placement)
            write_trees(placement, own)
            written |= {own, mpich.device_file(own)}
        texts = _texts(study, placement, catalogue, folder, numbers, bool(write_trees))
        for path, text in texts.items():
            write_atomically(path, text.encode())
        written |= texts.keys()
    if mpi not in OWN_FORMAT:
        entries = shapes(study, found, catalogue)
        write_atomically(folder / SHAPES_NAME, json.dumps(entries, indent=1).encode() + b"\n")
        write_atomically(folder / LAUNCHER_NAME, LAUNCHER.read_bytes())
        (folder / LAUNCHER_NAME).chmod(0o755)
        written |= {folder / SHAPES_NAME, folder / LAUNCHER_NAME}
    write_atomically(
        folder / "README.md", readme(study, found, catalogue, built, lost(folder, study["simulated"])).encode()
    )
    return files_in(folder) - written


def files_in(folder: Path) -> set[Path]:
    """Return the tuning files of all libraries in *folder*, and the launcher that uses them."""
    kinds = ("openmpi-*", "mpich-*", "intel-*", "coll-*", "nccl-*", LAUNCHER_NAME, SHAPES_NAME)
    return {path for kind in kinds for path in folder.glob(kind)}


def _texts(
    study: dict[str, Any], placement: Placement, catalogue: Catalogue, folder: Path, numbers: dict[str, dict[str, int]],
    with_trees: bool,
) -> dict[Path, str]:  # fmt: skip
    """Return the files of a placement that this project writes itself, by path."""
    mpi = study["provenance"]["mpi"]
    header = header_of(study, placement)
    foreign = (
        "For another library than the measured one, whose algorithms of the same name are different implementations."
    )
    intel = header_of(study, placement, "the rule of the nearest measured ones applies")
    own = rules_path(folder, mpi, placement)
    texts = {}
    if (ours := in_library(catalogue, placement)).tables:
        default = "ompi_default" if study["simulated"] else "default"
        texts[_library_path(folder, placement)] = library_rules(ours, catalogue, header, ours.grid(study), default)
    if mpi == "mpich":
        return texts | (
            {_subtrees_path(folder, placement): trees.subtrees_text(placement, catalogue)} if with_trees else {}
        )
    if mpi == "impi":
        return texts | {own: intel_variables(placement, catalogue, intel)}
    version = own_version(placement, study["provenance"]["mpi_version"])
    texts |= {
        own: openmpi_rules(placement, catalogue, header, numbers, version),
        folder / f"openmpi-5.0.7-{placement.name}.rules": openmpi_rules(
            placement, catalogue, header, numbers, version=2
        ),
        folder / f"openmpi-6.0-{placement.name}.json": openmpi_json(placement, catalogue, numbers),
        folder / f"intel-{placement.name}.sh": intel_variables(placement, catalogue, [*intel, foreign]),
        folder / f"mpich-{placement.name}.sh": trees.variables(placement, catalogue, [*header, foreign]),
    }
    if component := han_default(study, placement):
        texts[han_path(folder, placement)] = han_rules(placement, catalogue, component, header)
    return texts


def _emit_nccl(study: dict[str, Any], found: list[Placement], catalogue: Catalogue, folder: Path) -> set[Path]:
    """Write README.md and one file per mapping, whose lines distinguish numbers of nodes and ranks; return the latter files."""
    written = set()
    lines = [
        f"# Tuning files of study {study['name']}", "",
        f"{study['title']}. For NCCL's example tuner (`plugins/tuner/example` of NCCL's sources), by numbers of nodes and ranks "
        "that were measured; for all others NCCL decides. No NCCL has run with it here.", "", nccl.CHANNELS, "",
    ]  # fmt: skip
    for mapping in dict.fromkeys(placement.mapping for placement in found):
        own = [placement for placement in found if placement.mapping == mapping]
        # The file is for all numbers of nodes, and imported data has no fresh launches.
        header = [line for line in header_of(study, own[0]) if not line.startswith(("For: ", "Gains "))]
        path = rules_path(folder, "nccl", own[0])
        write_atomically(path, nccl.study_csv(own, study, catalogue, header).encode())
        written.add(path)
        lines += [
            f"Mapping {mapping}, in this folder:", "",
            f'    export NCCL_TUNER_CONFIG_FILE="$PWD/{path.name}" NCCL_TUNER_PLUGIN=/path/to/libnccl-tuner-example.so', "",
        ]  # fmt: skip
    write_atomically(folder / "README.md", "\n".join(lines).encode())
    return written


def shapes(study: dict[str, Any], found: list[Placement], catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return shapes.json for mpirun-tuned: for each file the mapping, and for each number of nodes the measured range of ranks. A file
    has several entries if ranks between two measured numbers use other nodes.

    `arguments` are those of mpirun, by the major version of Open MPI; `{folder}` stands for the folder of the files.
    """
    entries = []
    # Ranks do not alternate between the only units of a level. --map-by names the first level, also if there is only one unit.
    single = {level["name"] for level in study["machine"].get("levels", ()) if level["count"] == 1}
    decided: dict[str, dict[int, set[int]]] = {}
    for placement in found:
        for processes, used in itertools.chain(*(own.items() for own in placement.used.values())):
            decided.setdefault(placement.mapping, {}).setdefault(processes, set()).add(used)
    for placement in found:
        if "hosts" in catalogue.mappings[placement.mapping]:
            continue  # mpirun's options do not show the order of the hosts
        cycle = catalogue.mappings[placement.mapping]["cycle"]
        cycle = [*cycle[:1], *(level for level in cycle[1:] if level not in single)]
        ranges: dict[int, list[list[int]]] = {}
        for processes, used in sorted(itertools.chain(*placement.grid(study).values())):
            runs = ranges.setdefault(used, [[processes, processes]])
            others = (count for count, nodes in decided[placement.mapping].items() if used not in nodes)
            if any(runs[-1][1] < count < processes for count in others):
                runs.append([processes, processes])
            runs[-1][1] = processes
        here = Path("{folder}")
        own = rules_path(here, study["provenance"]["mpi"], placement)
        radix = radix_line(placement)
        old = rules_arguments(own, text=radix)
        han = han_path(here, placement) if han_default(study, placement) else None
        by_release = {"4": old, "5": rules_arguments(own, han=han, text=radix)}
        by_release["6"] = rules_arguments(here / f"openmpi-6.0-{placement.name}.json", text=radix)
        entries += [
            {
                "file": own.name, "mapping": placement.mapping, "cycle": cycle,
                "nodes": {str(nodes): ends for nodes, ends in zip(ranges, part, strict=True) if ends},
                "arguments": by_release, **({"from": VERSION_2} if _of_version_2(study, placement) else {}),
            }
            for part in itertools.zip_longest(*ranges.values())
        ]  # fmt: skip
    return entries


def _of_version_2(study: dict[str, Any], placement: Placement) -> bool:
    """Return whether the file for the study's own Open MPI has version 2, which earlier releases ignore."""
    return own_version(placement, study["provenance"]["mpi_version"]) == 2


def lost(folder: Path, simulated: bool) -> list[str]:
    """Return lines on the loss with one file for all shapes (tables/tuning-shared.csv); [] if no two shapes can be compared."""
    rows = [row for row in read_csv(folder.parent / "tables" / "tuning-shared.csv") if row["collective"] == "all"]
    if not rows:
        return []
    row = rows[0]
    return [
        "One file for all placements would lose performance: in cells (number of processes and message size) that several placements "
        f"have (at most {row['shapes']}), the algorithm",
        "that is best for all of them together is slower than the fastest one of each, by "
        f"{float(row['geometric_mean_pct']):.1f} % (geometric mean over {int(row['cells']):,} cells; 90th percentile "
        f"{float(row['p90_pct']):,.1f} %, maximum {float(row['max_pct']):,.0f} %).",
        *([] if simulated else ["The minimum over noisy latencies is biased low, so this is an upper bound."]),
        "",
    ]


def readme(
    study: dict[str, Any], found: list[Placement], catalogue: Catalogue, built: Path | None, shared: Iterable[str] = ()
) -> str:
    """Return README.md: how to use the files, with exact commands; *shared*: lines on the loss with one file for all placements."""
    ours = {placement.name: list(in_library(catalogue, placement).tables) for placement in found}
    own = preloaded(collectives_library(built or Path()), {})
    lines = [
        f"# Tuning files of study {study['name']}",
        "",
        f"{study['title']}. " + ("**Simulated**, not measured. " if study["simulated"] else "")
        + "One file for each placement: the formats cannot tell placements apart (Open MPI issue 8435).",
        "",
        *shared,
        *_measured_with(study),
        *_launching(study, found, catalogue),
        "In this folder, or in a copy of it that is visible on all nodes:",
        "",
        '    export TUNING="$PWD"',
        *(_library_lines(own) if any(ours.values()) else []),
        "",
        "Then, in the same shell and in any folder, with your program in place of `./program`:",
        "",
    ]  # fmt: skip
    for placement in found:
        rules = placement.rules
        changed = sum(rule.algorithm != "default" for rule in rules)
        lines += [
            f"## For {_placed(study, placement)}",
            "",
            f"{', '.join(placement.tables)}: {len(rules)} rules, {changed} of them other than the default."
            + _not_expressed(study, placement, catalogue, changed),
            "",
            *_on_order(study, placement),
            *_commands(study, placement),
        ]
        if ours[placement.name]:
            words = _with_library(study["provenance"]["mpi"], placement, own)
            lines += [
                f"This project's collectives library, for {', '.join(ours[placement.name])}:",
                "",
                f"    {words}",
                "",
            ]
    return "\n".join(lines)


def _measured_with(study: dict[str, Any]) -> list[str]:
    """Return a sentence on the environment variables of all launches, which the machine's file sets; [] without any."""
    environment = study["machine"].get("environment")
    if not environment:
        return []
    return [
        "Measured with " + ", ".join(f"`{name}={value}`" for name, value in environment.items())
        + " (`environment` of the machine): the rules are for programs that run with the same values.",
        "",
    ]  # fmt: skip


def _library_lines(own: dict[str, str]) -> list[str]:
    """Return the lines that set variables for the command of `_with_library`; *own*: the variables that preload the library."""
    lines = [f'    export COLLSTUDY="{own["LD_PRELOAD"]}"  # {BUILT}']
    if "LD_LIBRARY_PATH" in own:
        lines.append(f'    export LD_LIBRARY_PATH="{own["LD_LIBRARY_PATH"]}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"')
    return lines


def _not_expressed(study: dict[str, Any], placement: Placement, catalogue: Catalogue, changed: int) -> str:
    """Return a sentence, with a leading blank, if Open MPI's file has fewer than the *changed* rules; "" otherwise."""
    how = study["provenance"]
    if how["mpi"] in OWN_FORMAT:
        return ""
    readable = as_release_reads(placement, catalogue, how["mpi_version"])
    expressed = sum(rule.algorithm != "default" for rule in readable.rules)
    if expressed == changed:
        return ""
    file = rules_path(Path(), how["mpi"], placement)
    return f" The format of `{file}` can express {expressed} of these {changed}; for the others it has the default."


def _on_order(study: dict[str, Any], placement: Placement) -> list[str]:
    """Return a warning if a file may change the results of reductions; MPICH's file and Intel MPI check the operation."""
    changed = [
        name
        for name in REDUCTIONS
        if any(rule.algorithm != "default" for rules in placement.tables.get(name, {}).values() for rule in rules)
    ]
    if not changed or study["provenance"]["mpi"] in OWN_FORMAT:
        return []
    return [
        f"**Not for programs with operations that do not commute** (`MPI_Op_create` with `commute` 0): Open MPI applies the rules for"
        f" {', '.join(changed)} to all operations, and most algorithms give wrong results for these.",
        "",
    ]


def _launching(study: dict[str, Any], found: list[Placement], catalogue: Catalogue) -> list[str]:
    if study["provenance"]["mpi"] in OWN_FORMAT:
        return []
    named, in_turn = [], {}
    for placement in found:
        mapping = catalogue.mappings[placement.mapping]
        level = [*mapping["cycle"], ""][0]
        if level in CYCLES.values() and "hosts" not in mapping:
            named.append(f"-n {max(map(max, placement.used.values()))} --map-by {level or 'core'}")
            in_turn |= {level: None} if level in ("socket", "numa") else {}
    if not named:
        return []
    return [
        f"`{LAUNCHER_NAME}`, in place of Open MPI's mpirun and with its options, takes the file for the job's nodes, ranks and"
        f" `--map-by` (`{SHAPES_NAME}`); for a shape that was not measured it prints a message and uses none:",
        "",
        f"    ./{LAUNCHER_NAME} {named[0]} ./program",
        "",
        *(f"From Open MPI 5 on, ranks alternate with `--map-by {level} --rank-by slot` only.\n" for level in in_turn),
    ]


def _commands(study: dict[str, Any], placement: Placement) -> list[str]:
    mpi, here = study["provenance"]["mpi"], Path("$TUNING")
    own = rules_path(here, mpi, placement)
    if mpi == "mpich":
        words = [f'-genv {name} "{path}"' for name, path in mpich.environment(own).items()]
        newer = f'-genv MPIR_CVAR_COLL_SELECTION_JSON_FILE "{_subtrees_path(here, placement)}"'
        return [
            "MPICH, in the measured version:", "", f"    mpirun {' '.join(words)} ./program", "",
            "MPICH 5.1 and later (written by the rules of its reader, not checked or verified here):", "",
            f"    mpirun {newer} ./program", "",
        ]  # fmt: skip
    if mpi == "impi":
        return ["Intel MPI, in the measured version:", "", f'    . "{own}" && mpirun ./program', ""]

    def command(han: Path | None = None) -> list[str]:
        words = rules_arguments(own, han=han, text=radix_line(placement))
        words = [f'"{word}"' if word.startswith("$") else word for word in words]
        return ["", f"    mpirun {' '.join(words)} ./program", ""]

    component = han_default(study, placement)
    said = f"Open MPI 4.1{'' if component else ' and 5.0'} (from 5.0.7, `openmpi-5.0.7-*` is equivalent; for"
    if _of_version_2(study, placement):
        said = f"Open MPI {VERSION_2['4']}{'' if component else ' and ' + VERSION_2['5']} (earlier ones ignore the file; for"
    lines = [f"{said} 6.0 take the JSON file: 6.0 misapplies the process counts in this format):"]
    lines += command()
    if component:
        first = VERSION_2["5"] if _of_version_2(study, placement) else "5.0"
        meaning = {"han": "the measured one", "tuned": "coll/tuned's, as in this study"}[component]
        lines += [
            f"Open MPI {first}, where coll/han takes precedence over coll/tuned on several nodes and needs rules to yield; the default"
            f" is {meaning}:"
        ]
        lines += command(han_path(here, placement))
    name = placement.name
    return [
        *lines,
        f'Intel MPI: `. "$TUNING/intel-{name}.sh"`; MPICH: `. "$TUNING/mpich-{name}.sh"`. Neither was checked or verified',
        "here: their algorithms of the same name are different implementations.",
        "",
    ]


def _with_library(mpi: str, placement: Placement, own: dict[str, str]) -> str:
    values = {name: f"${name}" for name in own} | {"LD_PRELOAD": "$COLLSTUDY"}
    values["COLL_RULES"] = str(_library_path(Path("$TUNING"), placement))
    given = '-genv {} "{}"' if mpi in hydra.LIBRARIES else '-x {}="{}"'
    return " ".join(["mpirun", *(given.format(*one) for one in values.items()), "./program"])
