"""Properties of the sources that no linter checks."""

from __future__ import annotations

import re
from collections import Counter

from conftest import ROOT


def test_no_r_function_is_defined_twice() -> None:
    """In an R package the second definition wins silently; the report calls the package's functions and must not reuse their names."""
    folders = ROOT / "workflow" / "analysis" / "R", ROOT / "report" / "R"
    text = "\n".join(path.read_text() for folder in folders for path in folder.glob("*.R"))
    names = Counter(re.findall(r"^([\w.]+|`[^`]+`) <- ", text, re.MULTILINE))
    assert [name for name, count in names.items() if count > 1] == []
