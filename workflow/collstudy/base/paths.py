"""Paths of this checkout and of the products of set-up."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SETUP = ROOT / ".study"
SCHEMAS = ROOT / "workflow" / "schemas"
#: Where SETUP is in this project's image (Containerfile, apptainer.def).
IMAGE_SETUP = Path("/collstudy/.study")
