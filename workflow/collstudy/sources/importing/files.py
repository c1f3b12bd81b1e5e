"""Find the files that a study imports: path patterns, fields in names, metadata beside archives."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed, check_known
from collstudy.base.lazy import lazy
from collstudy.base.paths import ROOT
from collstudy.study.description import Study
from collstudy.study.openmpi_numbers import USES

np = lazy("numpy")

#: What names of files and of columns may give, as {field}.
FIELDS = {"algorithm", "protocol", "mapping", "nodes", "processes", "processes_per_node", "size_bytes", "launch", *USES}
_FIELD = re.compile(r"\{\w+\}")


def data_folder() -> str:
    """Return the folder of the reference data: STUDY_REFERENCE_DATA, by default ../shared/data beside the checkout."""
    return os.environ.get("STUDY_REFERENCE_DATA") or str(ROOT.parent / "shared" / "data")


def resolve(pattern: str) -> str:
    """Expand environment variables in a path; a relative path starts at the checkout."""
    text = pattern.replace("${STUDY_REFERENCE_DATA}", data_folder())
    return str(ROOT / os.path.expandvars(text))


def files_of(study: Study) -> list[tuple[dict[str, Any], Path]]:
    """Return the files that a study imports, each with its entry in the study's YAML; may be empty."""
    return files_of_entries(study.source.files)


def files_of_entries(entries: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Path]]:
    """Return the files of entries, each with its entry.

    A file that several patterns match belongs to the most specific one, with the longest fixed text: bcast1_fixed_core.csv to
    bcast{algorithm}_fixed_{mapping}.csv, not to bcast{algorithm}_{mapping}.csv. Equally long patterns share it.
    """
    matched = [(entry, path) for entry in entries for path in _matched(entry)]
    longest: dict[str, int] = {}
    for entry, path in matched:
        longest[path] = max(longest.get(path, 0), _fixed_text(entry))
    return [(entry, Path(path)) for entry, path in matched if _fixed_text(entry) == longest[path]]


def _matched(entry: dict[str, Any]) -> list[str]:
    """Return the files that an entry's path matches: they have a text for each of its fields, the same each time."""
    found, named = sorted(glob.glob(glob_of(entry))), _FIELD.search(resolve(entry["path"]))
    return [path for path in found if from_name(Path(path), entry)] if named else found


def not_matched(study: Study) -> list[str]:
    """Return the files that the path of an entry would match but for its fields."""
    found = {str(path) for _, path in files_of(study)}
    return sorted({path for entry in study.source.files for path in glob.glob(glob_of(entry))} - found)


def _fixed_text(entry: dict[str, Any]) -> int:
    """Return the number of characters of an entry's path outside of {field} and wildcards."""
    return len(glob_of(entry).replace("*", ""))


def glob_of(entry: dict[str, Any]) -> str:
    """Return the file pattern of an entry; {field} in its path matches any text."""
    return _FIELD.sub("*", resolve(entry["path"]))


def folders_of(study: Study) -> list[str]:
    """Return the folders (which may not exist) that contain, at any depth, all files that an imported study names."""
    named = [text for entry in study.source.files for text in entry.values() if isinstance(text, str) and "/" in text]
    return [os.path.dirname(re.split(r"[*?\[{]", resolve(text))[0]) for text in named]


def missing_files(study: Study) -> list[str]:
    """Return the patterns that match no file; patterns of `optional` entries count only if no entry has a file."""
    missing = {glob_of(entry): entry for entry in study.source.files if not _matched(entry)}
    needed = [pattern for pattern, entry in missing.items() if not entry.get("optional")]
    return needed or (list(missing) if len(missing) == len({glob_of(entry) for entry in study.source.files}) else [])


def from_name(path: Path, entry: dict[str, Any]) -> dict[str, str]:
    """Return the fields in the file's name, given by {algorithm}, {processes}, ... in the path of the entry."""
    return fields_in(str(path), resolve(entry["path"]), r"\*|\?|\[!?\]?[^]]*\]")


def fields_in(text: str, pattern: str, wildcards: str = r"\*") -> dict[str, str]:
    """Return the parts of a text that {field} in a pattern stands for, the same each time; {} if the text does not fit.

    *wildcards* is a regular expression for the pattern's wildcards, which have the meaning that they have in names of files.
    """
    seen: set[str] = set()

    def expression(part: str) -> str:
        if not _FIELD.fullmatch(part):
            return fnmatch.translate(part)[4:-3] if re.fullmatch(wildcards, part) else re.escape(part)
        name = part[1:-1]
        again = name in seen
        seen.add(name)
        return f"(?P={name})" if again else f"(?P<{name}>[^/]+)"

    found = re.fullmatch("".join(map(expression, re.split(rf"(\{{\w+\}}|{wildcards})", pattern))), text)
    return found.groupdict() if found else {}


def check_fields(entry: dict[str, Any], where: str) -> None:
    """Raise StudyError for an unknown {field} in the path or in `wide`, and for a pattern in `wide` without one."""
    for key, pattern in (("path", resolve(entry["path"])), ("wide", entry.get("wide"))):
        named = re.findall(r"\{(\w*)\}", pattern) if isinstance(pattern, str) else []
        for field in named:
            check_known(field, FIELDS, f"{where}: {key} has the unknown field {field!r}")
        if key == "wide" and isinstance(pattern, str) and not named:
            raise StudyError(f"{where}: wide is {pattern!r}, which has no {{field}}{allowed(FIELDS)}")


def fields_of_wide(entry: dict[str, Any]) -> set[str]:
    """Return the fields that the names of the columns of a wide table give, according to its entry."""
    given = entry.get("wide", {})
    return {*re.findall(r"\{(\w+)\}", given)} if isinstance(given, str) else {*given}


def given_by(entry: dict[str, Any], path: Path) -> set[str]:
    """Return the fields of a file's rows that its columns and their names, its own name, constants or `by_row` give, according to its
    entry.
    """
    given = {*entry.get("columns", {}), *entry.get("constants", {}), *entry.get("by_row", {}), *from_name(path, entry)}
    return given | ({*fields_of_wide(entry), "latency_us"} if "wide" in entry else set())


def metadata_files(entry: dict[str, Any]) -> list[Path]:
    """Return the metadata of an entry of format pico: the file that it names, or those beside its archives."""
    if "metadata" in entry:
        path = Path(resolve(entry["metadata"]))
        return [path] if path.exists() else []
    return sorted({found for path in glob.glob(glob_of(entry)) for found in Path(path).parent.glob("*_metadata.csv")})


def metadata_beside(path: Path) -> Path:
    """Return the metadata file beside an archive. Raises StudyError if there is not exactly one."""
    found = sorted(path.parent.glob("*_metadata.csv"))
    if len(found) != 1:
        raise StudyError(
            f"{path.parent}: {len(found)} files *_metadata.csv; `metadata` of the entry names the one to use"
        )
    return found[0]
