"""./study fetch, and the tables in data/."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import urllib.request
from pathlib import Path

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.cli import imports
from collstudy.cli.main import main
from collstudy.sources.importing.formats import compact
from conftest import reference_data


class Answer:
    """The answer of a web server."""

    def __init__(self, content: bytes):
        self.content = content

    def read(self) -> bytes:
        return self.content

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_fetching_checks_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = reference_data() / "orfeo-epyc-derin"
    known = yaml.safe_load((ROOT / "data" / "fetch.yaml").read_text())["orfeo-epyc-derin"]
    asked = []

    def answer(url: str, timeout: float) -> Answer:
        asked.append(url)
        return Answer((theirs / Path(url).name).read_bytes())

    monkeypatch.setenv("STUDY_REFERENCE_DATA", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert main(["fetch", "orfeo-epyc-derin"]) == 0
    assert all(url.startswith(f"https://raw.githubusercontent.com/tanjaderin/HPC/{known['commit']}/") for url in asked)
    assert {path.name for path in (tmp_path / "orfeo-epyc-derin").iterdir()} == {
        file["name"] for file in known["files"]
    }
    # Existing files are not downloaded again; an existing file with other content is not overwritten.
    asked.clear()
    assert main(["fetch", "orfeo-epyc-derin"]) == 0 and not asked
    (tmp_path / "orfeo-epyc-derin" / "bcast_combined.csv").write_text("mine")
    assert main(["fetch", "orfeo-epyc-derin"]) == 2
    assert (tmp_path / "orfeo-epyc-derin" / "bcast_combined.csv").read_text() == "mine"
    (tmp_path / "orfeo-epyc-derin" / "bcast_combined.csv").unlink()
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: Answer(b"another"))
    assert main(["fetch", "orfeo-epyc-derin"]) == 2
    assert "the checksum differs" in capsys.readouterr().err
    assert not (tmp_path / "orfeo-epyc-derin" / "bcast_combined.csv").exists()


def test_the_names_of_fetch_have_the_reference_datas_checksums() -> None:
    folder = reference_data()
    known = yaml.safe_load((ROOT / "data" / "fetch.yaml").read_text())
    here = [name for name in known if (folder / name).is_dir()]
    assert {"orfeo-thin", "orfeo-thin-fantuzzi", "orfeo-epyc-derin"} <= set(here)
    for name in here:
        entry = known[name]
        for file in entry["files"]:
            assert hashlib.sha256((folder / name / file["name"]).read_bytes()).hexdigest() == file["sha256"], (
                name,
                file["name"],
            )


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "data").glob("*.yaml") if path.stem != "fetch"))
def test_the_tables_of_data_are_made_of_the_authors_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the import checks, or of how files are read, changes the stored tables with it."""
    if (kept := ROOT / "tests" / "data" / name).is_dir():
        monkeypatch.setenv("STUDY_REFERENCE_DATA", str(tmp_path / "authors"))
        (tmp_path / "authors" / name).mkdir(parents=True)
        for path in kept.glob("*.gz"):
            (tmp_path / "authors" / name / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    else:
        reference_data()

    def tables(folder: Path) -> dict[str, bytes]:
        found = {path.name: path.read_bytes() for path in folder.glob(f"{name}.*") if path.suffix != ".yaml"}
        return {file: gzip.decompress(of) if file.endswith(".gz") else of for file, of in found.items()}

    (tmp_path / f"{name}.yaml").write_text((ROOT / "data" / f"{name}.yaml").read_text())
    monkeypatch.setattr(imports, "DATA", tmp_path)
    assert main(["compact", name]) == 0
    made, stored = tables(tmp_path), tables(ROOT / "data")
    assert made.keys() == stored.keys()
    stale = [file for file in sorted(made) if made[file] != stored[file]]
    assert not stale, f"stale: {', '.join(stale)}; make again with ./study compact {name}, and look at the difference"


def test_a_table_that_is_none(tmp_path: Path) -> None:
    table = gzip.compress(b"algorithm,latency_us\nlinear,1\n")
    for content in (
        b"x", gzip.compress(b"a,b\n1,2\n"), gzip.compress(b""), table[:-9], table[:10] + b"\xff" * 8 + table[18:],
        gzip.compress(b'algorithm,latency_us\n"linear,1\n'),
    ):  # fmt: skip
        (tmp_path / "x.csv.gz").write_bytes(content)
        with pytest.raises(StudyError, match="not a compact table"):
            list(compact.rows(tmp_path / "x.csv.gz"))


def test_an_interrupted_download_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(Answer):
        def read(self) -> bytes:
            raise http.client.IncompleteRead(b"half", 100)

    monkeypatch.setenv("STUDY_REFERENCE_DATA", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: Interrupted(b""))
    assert main(["fetch", "orfeo-epyc-derin"]) == 2
    assert "IncompleteRead" in capsys.readouterr().err and not list(tmp_path.rglob("*.*"))
