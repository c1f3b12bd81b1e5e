"""The benchmark suites whose raw output is read, by the `format` of an entry.

A suite's module has the functions `is_output(text)`, `collectives_of(text)` (the collectives that a text names; None if it cannot name
them), `rows(path, entry, problems)` and, except for NCCL, `ranks_said(text, collective)` (the numbers of ranks of its outputs; [] if
the text does not give them); its SOFTWARE is that of a drafted study, and VERSION the pattern of the suite's version.
"""

from __future__ import annotations

from typing import Any

from collstudy.sources.importing.formats import imb, nccl_tests, omb, reprompi

OUTPUTS: dict[str, Any] = {"omb": omb, "imb": imb, "nccl-tests": nccl_tests, "reprompi": reprompi}
