"""Cells of a study, with invented versions of the software that measures them."""

from __future__ import annotations

from collstudy.study.cells import Cell, Versions, expand
from conftest import TINY, Checkout

VERSIONS = Versions(
    {"smpi-openmpi": {"name": "collbench", "version": "1"}},
    {"smpi-openmpi": {"name": "smpi-openmpi", "version": "SimGrid 3.32"}},
    "1.0",
    {"processor": "x"},
    {"svd": {"name": "svd", "version": "1.0"}},
)


def cells_of(checkout: Checkout, text: str = TINY) -> list[Cell]:
    checkout.write("config/studies/tiny.yaml", text)
    configuration = checkout.configuration
    return expand(configuration.study("tiny"), configuration.catalogue, VERSIONS)
