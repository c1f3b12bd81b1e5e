"""Sources of a study's numbers: one file per kind."""

import importlib
import pkgutil

from collstudy.sources.source import Context, Source
from collstudy.study.description import Study


def source_of(study: Study, context: Context) -> Source:
    """The source of a study: the kind in this folder that belongs to its description."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    (kind,) = (kind for kind in _kinds(Source) if kind.described_by is type(study.source))
    return kind(study, context)


def _kinds(base: type[Source]) -> set[type[Source]]:
    return set(base.__subclasses__()).union(*(_kinds(kind) for kind in base.__subclasses__()))
