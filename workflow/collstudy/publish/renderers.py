"""Find the installed program that renders the report: Quarto, or pandoc and typst."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from collstudy.base.commands import ask
from collstudy.base.errors import StudyError

#: typst output needs pandoc 3.1.2; the filter's walk order and table attributes need 3.2.
PANDOC_MINIMUM = (3, 2)
#: Before 1.9, Quarto downloads a typst package for the callouts of every PDF; compute nodes seldom have network access.
QUARTO_MINIMUM = (1, 9)


@dataclass(frozen=True)
class Renderer:
    """The rendering program, with the versions named in the report's provenance."""

    name: str
    version: str
    pandoc: str
    typst: str
    executable: str


def version_of(executable: str, *arguments: str) -> str:
    """Return the first version number that `executable arguments` prints, or ""."""
    done = ask([executable, *arguments])
    # `quarto typst` writes typst's output to standard error.
    found = None if done.returncode else re.search(r"\d+(\.\d+)+", done.stdout or done.stderr)
    return found.group() if found else ""


def at_least(version: str, minimum: tuple[int, int]) -> bool:
    """Return whether *version* ("1.9.38", or "") is *minimum* or newer."""
    return bool(version) and tuple(int(part) for part in version.split(".")[:2]) >= minimum


def find_pandoc() -> tuple[str, str]:
    """Return path and version of a sufficiently new pandoc: first the one from PyPI, then the one on PATH. Raises StudyError."""
    candidates = []
    try:
        import pypandoc

        candidates.append(str(Path(pypandoc.__file__).parent / "files" / "pandoc"))
    except ImportError:
        pass
    candidates.append(shutil.which("pandoc") or "")
    seen = []
    for path in filter(None, candidates):
        version = version_of(path, "--version")
        if at_least(version, PANDOC_MINIMUM):
            return path, version
        seen.append(f"{path} is {version or 'not usable'}")
    wanted = ".".join(map(str, PANDOC_MINIMUM))
    raise StudyError(
        f"report: no pandoc {wanted} or newer ({'; '.join(seen) or 'none found'}); "
        "pip install pypandoc_binary, or install Quarto"
    )


def typst_version() -> str:
    """Return the version of the typst compiler from PyPI. Raises StudyError if it is missing."""
    try:
        from importlib.metadata import version

        import typst  # noqa: F401

        return version("typst")
    except ImportError as error:
        raise StudyError("report: the typst compiler is missing; pip install typst, or install Quarto") from error


def choose_renderer(wanted: str) -> Renderer:
    """Return Quarto if a sufficiently new version is on PATH, otherwise the fallback; *wanted* can require one of them."""
    quarto = shutil.which("quarto") if wanted != "fallback" else None
    if quarto:
        version = version_of(quarto, "--version")
        if at_least(version, QUARTO_MINIMUM):
            return Renderer(
                "Quarto",
                version,
                version_of(quarto, "pandoc", "--version"),
                version_of(quarto, "typst", "--version"),
                quarto,
            )
        lack = f"{quarto} is {version or 'not usable'}, not {'.'.join(map(str, QUARTO_MINIMUM))} or newer"
        print(f"report: {lack}", file=sys.stderr, flush=True)
    else:
        lack = "no quarto on PATH"
    if wanted == "quarto":
        raise StudyError(f"report: --renderer quarto, but {lack}")
    path, version = find_pandoc()
    return Renderer("knitr + pandoc + typst", "", version, typst_version(), path)
