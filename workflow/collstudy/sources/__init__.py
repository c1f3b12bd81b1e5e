"""Sources of a study's numbers: sweeps, sampling, programs, traces, imports, other studies. Each kind has its own module."""

import importlib
import pkgutil

from collstudy.sources.source import Context, Source
from collstudy.study.description import Study
from collstudy.tuning.rules import Placement


def source_of(study: Study, context: Context) -> Source:
    """Return the source of a study: an instance of the class that matches its description."""
    (kind,) = (kind for kind in _kinds() if kind.described_by is type(study.source))
    return kind(study, context)


def verifier_of(source: Source, placements: list[Placement]) -> Source | None:
    """Return the source whose work verifies the tuning files of *placements*; None if nothing can be launched."""
    verify = {kind.verifies: kind for kind in _kinds() if kind.verifies}
    kind = next((verify[base] for base in type(source).__mro__ if base in verify), None)
    return kind(source.study, source.context, placements) if kind and placements else None


def _kinds() -> set[type[Source]]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return _below(Source)


def _below(base: type[Source]) -> set[type[Source]]:
    return set(base.__subclasses__()).union(*(_below(kind) for kind in base.__subclasses__()))
