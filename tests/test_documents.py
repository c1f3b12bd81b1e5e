"""Cached documents are reused only for the same text, schema and parser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.study import document
from conftest import ROOT, Checkout, must

CONFIG = """# Comment
studies: [a, b]
results: results
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = tmp_path / "config.yaml"
    written.write_text(CONFIG)
    return written


@pytest.fixture
def parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(document, "PARSED", tmp_path / "documents")
    return tmp_path / "documents"


def test_the_same_text_has_the_same_content_and_places(path: Path, parsed: Path) -> None:
    first, where = document.read_document(path, "config")
    assert len(list(parsed.iterdir())) == 1
    again, there = document.read_document(path, "config")
    assert again == first == {"studies": ["a", "b"], "results": "results"}
    assert str(there / "results") == str(where / "results") and "line 3" in str(there / "results")


def test_a_changed_text_is_checked(path: Path, parsed: Path) -> None:
    document.read_yaml(path, "config")
    path.write_text(CONFIG + "resluts: 1\n")
    for _ in range(2):
        with pytest.raises(StudyError, match="line 4: unknown key 'resluts'"):
            document.read_document(path, "config")


def test_what_is_remembered_of_another_schema_does_not_count(path: Path, parsed: Path) -> None:
    document.read_yaml(path, "config")
    with pytest.raises(StudyError):
        document.read_yaml(path, "machine")


def test_half_a_file_is_parsed_again(path: Path, parsed: Path) -> None:
    document.read_yaml(path, "config")
    (kept,) = parsed.iterdir()
    kept.write_bytes(kept.read_bytes()[:20])
    assert document.read_yaml(path, "config")["results"] == "results"
    assert document.read_yaml(path, "config")["results"] == "results"


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(document, "PARSED", tmp_path / "file" / "documents")
    assert document.read_yaml(path, "config")["results"] == "results"


def test_a_run_loads_no_library_that_it_does_not_use(checkout: Checkout) -> None:
    done = must(checkout.python("-X", "importtime", "-m", "collstudy", "run", "--plan", "--", "--dry-run"))
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "snakemake_executor_plugin_slurm.efficiency_report" in loaded
    assert not loaded & {"pandas._libs", "pandas.core", "numpy._core"}


def test_a_lazy_module_is_loaded_by_use_and_not_by_import() -> None:
    code = (
        "import sys; from collstudy.base.lazy import lazy; np = lazy('numpy'); import numpy;"
        "assert numpy is np and 'numpy._core' not in sys.modules;"
        "from numpy import array; assert array([1, 2]).sum() == 3 and np.array is array"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "workflow")
