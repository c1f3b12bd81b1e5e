"""The packages ("rooms") of the Python part: which may import which, and that docs/architecture.md shows their imports."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter

from conftest import ROOT

PACKAGE = ROOT / "workflow" / "collstudy"


def imports() -> dict[str, set[str]]:
    """Return the other modules that each module imports, anywhere in its text."""
    names = {
        path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
    }
    found: dict[str, set[str]] = {}
    for path, own in names.items():
        mine = found.setdefault(own, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: a relative import"
            if isinstance(node, ast.ImportFrom):
                # A name is a module of a package, or is defined in a module.
                named = [f"{node.module}.{alias.name}" for alias in node.names]
                named = [name if name.removeprefix("collstudy.") in names.values() else node.module for name in named]
            else:
                named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            mine.update(name.removeprefix("collstudy.") for name in named if name.startswith("collstudy."))
    return {own: mine - {own} for own, mine in found.items()}


def rooms() -> dict[str, set[str]]:
    """Return the other rooms that the modules of each room import."""
    found: dict[str, set[str]] = {}
    for module, others in imports().items():
        if "." in module:
            room = module.partition(".")[0]
            found.setdefault(room, set()).update({other.partition(".")[0] for other in others} - {room})
    return found


def test_rooms_import_each_other_without_a_cycle() -> None:
    found = rooms()
    assert {"base", "study", "store", "plan", "launch", "sources", "project", "cli"} <= set(found)
    # Raises CycleError, which names the cycle.
    order = list(TopologicalSorter(found).static_order())
    assert order[0] == "base" and order[-1] == "cli"


def test_modules_import_each_other_without_a_cycle() -> None:
    found = imports()
    assert "project.studies" in found["project.tuner"] and "launch.openmpi" in found["project.tuner"]
    TopologicalSorter(found).prepare()


def test_importers_do_not_depend_on_checks_or_drafts() -> None:
    inside = "sources.importing."
    found = {own.removeprefix(inside): mine for own, mine in imports().items() if own.startswith(inside)}
    assert "sources.importing.formats.omb" in found["drafting.draft"]
    for own, mine in found.items():
        part = own.partition(".")[0]
        others = {"checking", "drafting"} - {part}
        assert not {name for name in mine if name.removeprefix(inside).partition(".")[0] in others}, own


def test_the_picture_of_the_rooms_is_true() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"```mermaid\n(.*?)```", text, re.DOTALL)
    shown: dict[str, set[str]] = {}
    for room, others in re.findall(r"^ *(\w+) --> (.+)$", picture, re.MULTILINE):
        shown.setdefault(room, set()).update(name.strip() for name in others.split("&"))
    # The drawing omits arrows to the room that all others use.
    assert shown == {room: others - {"base"} for room, others in rooms().items() if others - {"base"}}


#: Code that checks the kind of a study instead of asking its source.
KIND = re.compile(
    r"study\.(applications|imports|sampling|program|gather)\b|(isinstance|getattr|hasattr)\((\w+\.)*source,"
    r"|import .*\b(Swept|Sampled|Imported|Traced|Gathered|Program)Source"
)


def test_only_sources_ask_what_kind_a_study_is_of() -> None:
    assert KIND.search("from collstudy.sources.program import ProgramSource") and KIND.search(
        "isinstance(a.b.source, X)"
    )
    # The description of a study (Study.sweeps) may check the kind.
    known = {PACKAGE / "study" / "description.py"}
    for path in {*PACKAGE.rglob("*.py"), *(ROOT / "workflow" / "rules").iterdir()} - known:
        if path.parent.name != "sources":
            assert not KIND.search(path.read_text(encoding="utf-8")), path
