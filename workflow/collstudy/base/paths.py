"""Paths of this checkout and of the folder that set-up creates."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SETUP = ROOT / ".study"
SCHEMAS = ROOT / "workflow" / "schemas"
#: The location of SETUP in this project's container image (Containerfile, apptainer.def).
IMAGE_SETUP = Path("/collstudy/.study")
