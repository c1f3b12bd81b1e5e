"""What the scripts of a folder ran otherwise than they seem to say: options and variables that have no effect."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from collstudy.study.openmpi_numbers import NUMBERS

#: Endings of scripts that start benchmarks.
SCRIPTS = (".sh", ".sbatch", ".slurm", ".job", ".pbs")
#: An option of OMB for iterations or warm-up calls whose number is not in digits.
_EXPONENT = re.compile(r"(?<=\s)-[ix][ =]?(\d+)(?:\.\d*)?[eE]\d+\b", re.ASCII)
#: An algorithm of Open MPI that a command forces, and the switch without which it is not used.
_FORCED = re.compile(r"\bcoll_tuned_(\w+?)_algorithm[ =]+\"?(\$?\{?\w+\}?)", re.ASCII)
_RULES = re.compile(r"\bcoll_tuned_use_dynamic_rules[ =]+\"?(\w+)", re.ASCII)


def questions_about_scripts(folder: Path) -> Iterator[str]:
    """Yield what the options of scripts do otherwise than their names say, with the scripts."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in SCRIPTS and path.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
        for said in sorted({*_exponents(text), *_not_forced(text)}):
            found[said].append(str(path.relative_to(folder)))
    for said, names in sorted(found.items()):
        yield f"{', '.join(names[:3])}{f' and {len(names) - 3} more' * (len(names) > 3)}: {said}"


def _exponents(text: str) -> Iterator[str]:
    """Yield the options such as `-i 1e4`: OMB reads numbers by atoi(), so that this is one iteration."""
    for option in _EXPONENT.finditer(text) if "osu_" in text else ():
        calls = "timed calls" if option.group().startswith("-i") else "calls before them"
        yield f"{option.group()} is {option.group(1)} for OMB, which reads no exponents: the number of {calls}"


def _not_forced(text: str) -> Iterator[str]:
    """Yield the algorithms of commands that Open MPI ignores: of a collective that it does not know by this name or that the benchmark
    does not call, or without its rules.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    elsewhere = any("coll_tuned_use_dynamic_rules" in line and not _FORCED.search(line) for line in lines)
    for line in lines:
        benchmarks = {*re.findall(r"\bosu_(\w+)", line)} & NUMBERS.keys()
        rules = _RULES.search(line)
        for collective, number in _FORCED.findall(line):
            variable = f"coll_tuned_{collective}_algorithm"
            if collective not in NUMBERS:
                yield f"Open MPI has no {variable}"
            elif benchmarks and collective not in benchmarks:
                yield f"{variable} has no effect on osu_{' and osu_'.join(sorted(benchmarks))}"
            elif number != "0" and rules and rules.group(1).lower() in ("0", "false", "no", "off"):
                yield f"{variable} {number} has no effect with {rules.group()}"
            elif number != "0" and not rules and not elsewhere:
                yield f"{variable} {number} has no effect without coll_tuned_use_dynamic_rules"
