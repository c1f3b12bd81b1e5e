"""./study import: the draft of a study from a folder of results."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.project.studies import Project
from collstudy.sources.importing import omb
from collstudy.sources.importing.draft import draft
from collstudy.study.config import Configuration
from conftest import Checkout, must

CONFIGURATION = Configuration(ROOT / "config")


def test_the_draft_of_numbered_files(tmp_path: Path) -> None:
    for number, mapping in ((1, "core"), (1, "node"), (6, "core")):
        (tmp_path / f"bcast{number}_{mapping}_thin.csv").write_text(
            "Processes,Size,Avg Latency (ns),Notes\n2,1,200,x\n"
        )
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    (entry,) = yaml.safe_load(text)["import"]["files"]
    assert entry["path"] == f"{tmp_path}/bcast{{algorithm}}_{{mapping}}_thin.csv"
    assert (entry["collective"], entry["unit"], entry["algorithms"]) == ("bcast", "ns", "numbers")
    assert entry["columns"] == {"processes": "Processes", "size_bytes": "Size", "latency_us": "Avg Latency (ns)"}
    assert any("the meaning of the column 'Notes'" in question for question in questions)
    assert any("whether the algorithms 1, 6 are Open MPI's numbers" in question for question in questions)


def test_the_command_writes_the_draft_and_names_the_next_step(checkout: Checkout) -> None:
    (checkout.folder / "measured").mkdir()
    (checkout.folder / "measured" / "bcast_core.csv").write_text(
        "Algorithm,Processes,Size,Latency (us)\nchain,2,1,0.2\n"
    )
    done = must(checkout.python("-m", "collstudy", "import", "measured", "--name", "theirs"))
    assert (
        (checkout.folder / "config" / "studies" / "theirs.yaml").read_text().startswith("# Drafted by ./study import")
    )
    assert done.stdout.endswith("/config/studies/theirs.yaml\n")
    assert done.stderr.endswith("next: complete the study by hand, then ./study run theirs\n")


def test_a_machine_that_has_no_import(checkout: Checkout) -> None:
    checkout.write("measured/bcast_core.csv", "Algorithm,Processes,Size,Latency (us)\nchain,2,1,0.2\n")
    drafted = ("import", "measured", "--name", "theirs", "--machine")
    done = checkout.collstudy(*drafted, "thin")
    assert done.returncode == 2 and not (checkout.folder / "config/studies/theirs.yaml").exists()
    assert done.stderr.startswith("error: --machine: thin is of kind simulated; an import needs kind imported; known: ")
    done = must(checkout.collstudy(*drafted, "orfeo-thn"))
    assert (
        "config/machines/orfeo-thn.yaml does not exist yet (did you mean 'orfeo-thin'?): kind: imported" in done.stderr
    )


def test_the_draft_of_named_algorithms(tmp_path: Path) -> None:
    header = "Algorithm,Allocation,Processes,MessageSize,Latency"
    (tmp_path / "reduce_a.csv").write_text(
        f"{header}\nBinomial,core,2,1,0.5\nIn-order binary,rack,2,1,0.5\nMine,core,2,1,0.5\n"
    )
    text, questions = draft(tmp_path, "theirs", None, CONFIGURATION)
    (entry,) = yaml.safe_load(text)["import"]["files"]
    assert entry["algorithms"] == {"Binomial": "binomial", "In-order binary": "in_order_binary", "Mine": "?"}
    assert entry["mappings"] == {"rack": "?"}
    assert any("the algorithms Mine; known: " in question for question in questions)
    assert any(question.startswith("machine: the machine of the measurements") for question in questions)


TABLE = [("linear", "core", 2, 1, "0.21"), ("chain", "node", 4, 1024, "2.5")]


WORDS = {"linear": "Basic Linear", "chain": "Chain"}


def read(folder: Path, version: str | None = "4.1.5") -> list[tuple]:
    """Return the rows of the study that is drafted for a folder, after its software was filled in."""
    text, _ = draft(folder, "theirs", "orfeo-thin", CONFIGURATION)
    document = yaml.safe_load(text)
    document["question"] = "Which?"
    document["import"] |= {"mpi_version": version} if version else {}
    config = folder.parent / "config"
    shutil.copytree(ROOT / "config", config)
    (config / "studies" / "theirs.yaml").write_text(yaml.safe_dump(document))
    rows, account = Project(config, folder.parent / "results").source("theirs").every
    assert account["problems"] == {}
    return [
        tuple(row[name] for name in ("algorithm", "mapping", "processes", "size_bytes", "latency_us")) for row in rows
    ]


@pytest.mark.parametrize(
    ("name", "separator", "header", "comma"),
    [
        ("bcast.csv", ";", "Algorithm;Mapping;Processes;Size;Latency (us)", False),
        ("bcast.csv", ";", "Algorithm;Mapping;Processes;Size;Latency (us)", True),
        ("bcast.tsv", "\t", "algo\tmap-by\tnp\tsize\tavg_us", False),
        ("results_bcast.csv.gz", ",", "# measured on thin001\n\nAlgorithm,Allocation,#procs,Bytes,Time(us)", False),
        ("bcast.dat", "   ", "# algorithm mapping processes size latency_us", False),
    ],
    ids=["semicolons", "decimal commas", "tabs", "gzip and comments", "blanks and a commented header"],
)
def test_tables_of_any_form_are_read(tmp_path: Path, name: str, separator: str, header: str, comma: bool) -> None:
    words = dict.fromkeys(WORDS) if separator == "   " else WORDS
    lines = [
        separator.join(
            (words[algorithm] or algorithm, mapping, str(ranks), str(size), us.replace(".", ",") if comma else us)
        )
        for algorithm, mapping, ranks, size, us in TABLE
    ]
    if separator == "   ":
        header, lines = "# processes size latency_us", [line.split(separator, 2)[2] for line in lines]
        for (algorithm, mapping, *_), line in zip(TABLE, lines, strict=True):
            (tmp_path / "theirs" / mapping).mkdir(parents=True)
            (tmp_path / "theirs" / mapping / f"bcast_{algorithm}.dat").write_text(f"{header}\n{line}\n")
    else:
        (tmp_path / "theirs").mkdir()
        text = "\n".join([header, *lines]) + "\n"
        (tmp_path / "theirs" / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert read(tmp_path / "theirs") == [(*row[:4], float(row[4])) for row in TABLE]


GRID = [
    (algorithm, mapping, ranks, size, f"{0.2 * ranks + size / 1000:.2f}")
    for algorithm in ("linear", "chain") for mapping in ("core", "node") for ranks in (2, 4, 6) for size in (1, 64, 1024, 4096)
]  # fmt: skip


def joined(rows: list[tuple], header: str = "", separator: str = ",") -> str:
    return (f"{header}\n" if header else "") + "".join(separator.join(map(str, row)) + "\n" for row in rows)


def by_two(name: str, key: int) -> str:
    """Return the grid as a table with one column per value of one of its fields."""
    values = list(dict.fromkeys(row[key] for row in GRID))
    rest: dict[tuple, list[str]] = {}
    for row in GRID:
        rest.setdefault(row[:key] + row[key + 1 : 4], []).append(row[4])
    header = ["algorithm", "mapping", "processes", "size"]
    header[key : key + 1] = []
    return joined(
        [(*of, *us) for of, us in rest.items()], ",".join([*header, *(name.format(value) for value in values)])
    )


NUMBERS = {"linear": 1, "chain": 2}


LAYOUTS = {
    "no header": {"bcast.csv": joined(GRID)},
    "no header, minimum and maximum, a number": {
        "bcast.csv": joined([(NUMBERS[a], m, p, s, us, float(us) / 2, float(us) * 2) for a, m, p, s, us in GRID])
    },
    "no header, names of files": {
        f"bcast_{a}_{m}.txt": joined([row[2:] for row in GRID if row[:2] == (a, m)], separator=" ")
        for a in NUMBERS for m in ("core", "node")
    },
    "a number in the name": {
        f"{m.title()}_bcast_{NUMBERS[a]}.csv": joined([row[2:] for row in GRID if row[:2] == (a, m)], "np,size,lat")
        for a in NUMBERS for m in ("core", "node")
    },
    "names with a further word": {
        f"bcast{NUMBERS[a]}_{word}{m}.csv": joined([row[2:] for row in GRID if row[:2] == (a, m) and (row[3] == 64) == bool(word)],
            "Processes,Size,Latency")
        for a in NUMBERS for m in ("core", "node") for word in ("", "fixed_")
    },
    "wide by algorithm": {"bcast.csv": by_two("{} (us)", 0)},
    "wide by ranks": {"bcast.csv": by_two("np{}", 2)},
    "wide by size": {"bcast.csv": by_two("{}", 3)},
    "wide by ranks, between blanks": {
        f"bcast_{a}_{m}.txt": "size  np2  np4  np6\n"
            + "".join(f"{s} " + " ".join(row[4] for row in GRID if (*row[:2], row[3]) == (a, m, s)) + "\n" for s in (1, 64, 1024, 4096))
        for a in NUMBERS for m in ("core", "node")
    },
    "sizes with units": {
        "bcast.csv": joined([(a, m, p, f"{s}B" if s < 1024 else f"{s // 1024} KiB", us) for a, m, p, s, us in GRID],
            "algorithm,mapping,np,size,latency")
    },
    "sizes in KiB": {
        "bcast.csv": joined([(a, m, p, s / 1024, us) for a, m, p, s, us in GRID], "algorithm,mapping,np,Size (KiB),latency")
    },
    "nodes and ranks a node": {
        "bcast.csv": joined([(a, m, 2, p // 2, s, us) for a, m, p, s, us in GRID], "algorithm,mapping,nodes,ppn,size,latency")
    },
    "nodes x ranks a node": {
        "broadcast.csv": joined([(a, m, f"2x{p // 2}", s, us) for a, m, p, s, us in GRID], "algorithm,mapping,np,size,latency")
    },
    "comments": {"bcast.csv": "// thin\n" + joined(GRID, "algorithm,mapping,np,size,latency") + "  # the end, of it\n"},
    "a column of messages": {"bcast.csv": joined(GRID, "algorithm,mapping,ranks,message,avg_us")},
    "a column of the collective beside a name": {
        "bcast.csv": joined([("bcast", *row) for row in GRID], "Collective,algorithm,mapping,np,size,latency")
    },
    "the collective and a machine in capitals": {"bcastEPYC.csv": joined(GRID, "Algorithm,Map,Processors,Size(bytes),Avg_Latency(us)")},
    "names of folders": {
        f"bcast_{a}/{m}/output.csv": joined([row[2:] for row in GRID if row[:2] == (a, m)], "number_processes,Size,AvgLatency(us)")
        for a in NUMBERS for m in ("core", "node")
    },
    "the collective's letter and a number": {
        f"bcast_data/b{NUMBERS[a]}_map_by_{m}.csv": joined([row[2:] for row in GRID if row[:2] == (a, m)], "num_procs,Size,Latency")
        for a in NUMBERS for m in ("core", "node")
    },
    "words and runs between dots": {
        f"{run}.reduce.{a}.{m}.csv": joined(
            [row[2:] for i, row in enumerate(GRID) if row[:2] == (a, m) and i % 2 == int(run[1]) - 1], "np,Size,Latency")
        for run in ("r1", "r2") for a in NUMBERS for m in ("core", "node")
    },
    "a word and a number apart": {
        f"bcast_alg_{NUMBERS[a]}_{m}_np_{p}.csv": joined([row[3:] for row in GRID if row[:3] == (a, m, p)], "Size,Latency")
        for a in NUMBERS for m in ("core", "node") for p in (2, 4, 6)
    },
    "equal names, different headers": {
        "bcast_core.csv": joined([("x", a, *row) for a, _, *row in GRID if _ == "core"], '"",algorithm,np,size,latency'),
        "bcast_node.csv": joined([(a, *row) for a, _, *row in GRID if _ == "node"], "algorithm,ranks,size,latency"),
    },
    "a file for each algorithm with its column": {
        f"bcast_{a}_{m}.csv": joined([row for row in GRID if row[:2] == (a, m)], "algorithm,mapping,np,size,latency")
        for a in NUMBERS for m in ("core", "node")
    },
    "dates and jobs": {
        f"2024-02-{18 + i:02}/{a}/{m}/slurm-{44711 + i}_bcast_np_{p}.csv":
            joined([row[3:] for row in GRID if row[:3] == (a, m, p)], "Size,us")
        for i, (a, m, p) in enumerate((a, m, p) for a in NUMBERS for m in ("core", "node") for p in (2, 4, 6))
    },
    "times in the names and runs": {
        f"20240218_{153000 + i}_bcast_{a}_By{m.title()}_run{i}.csv":
            joined([row[2:] for row in GRID if row[:2] == (a, m)], "np,Size,Latency (us)")
        for i, (a, m) in enumerate((a, m) for a in NUMBERS for m in ("core", "node"))
    },
    "ranks in the names of folders": {
        f"{p}procs/bcast_{a}_{m}.csv": joined([row[3:] for row in GRID if row[:3] == (a, m, p)], "Size,Latency (us)")
        for a in NUMBERS for m in ("core", "node") for p in (2, 4, 6)
    },
    "nodes and ranks a node in the names": {
        f"bcast/{a}/{m}/2nodes_{p // 2}ppn.csv": joined([row[3:] for row in GRID if row[:3] == (a, m, p)], "Size,Latency (us)")
        for a in NUMBERS for m in ("core", "node") for p in (2, 4, 6)
    },
    "nodes as n": {
        f"N2-ppn{p // 2}/bcast_{a}_{m}.csv": joined([row[3:] for row in GRID if row[:3] == (a, m, p)], "Size,Latency (us)")
        for a in NUMBERS for m in ("core", "node") for p in (2, 4, 6)
    },
    "nodes x ranks a node in the names": {
        f"bcast_{a}_{m}_2x{p // 2}.csv": joined([row[3:] for row in GRID if row[:3] == (a, m, p)], "Size,Latency (us)")
        for a in NUMBERS for m in ("core", "node") for p in (2, 4, 6)
    },
    "sizes in the names": {
        f"bcast_{a}_{m}_{s}B.csv": joined([(row[2], row[4]) for row in GRID if row[:2] == (a, m) and row[3] == s], "np,Latency (us)")
        for a in NUMBERS for m in ("core", "node") for s in (1, 64, 1024, 4096)
    },
    "a column of the collective": {
        "results.csv": joined([("MPI_Bcast", *row) for row in GRID], "Collective,algorithm,mapping,np,size,latency")
    },
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path: Path, layout: str) -> None:
    (tmp_path / "theirs").mkdir()
    for name, text in LAYOUTS[layout].items():
        (tmp_path / "theirs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "theirs" / name).write_text(text)
    assert sorted(read(tmp_path / "theirs")) == sorted((*row[:4], float(row[4])) for row in GRID)


def test_what_is_guessed_is_asked(tmp_path: Path) -> None:
    (tmp_path / "bcast.csv").write_text(joined(GRID))
    _, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    assert any("no header line; whether its columns are algorithm, mapping, processes" in text for text in questions)
    (tmp_path / "bcast.csv").write_text(by_two("{}", 0))
    _, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    assert any("whether the columns linear, chain are times by algorithm" in text for text in questions)


def test_a_column_of_another_collective_than_the_name_says(tmp_path: Path) -> None:
    """The column takes precedence over the file name; no question is asked about a column that was understood."""
    (tmp_path / "bcast.csv").write_text(
        joined([("MPI_Reduce", *row) for row in GRID], "Collective,algorithm,mapping,np,size,us")
    )
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    assert yaml.safe_load(text)["import"]["files"][0]["collective"] == "reduce"
    assert not any("'Collective'" in question for question in questions)
    # A column without the name of a collective is asked about.
    (tmp_path / "bcast.csv").write_text(joined([("short", *row) for row in GRID], "Test,algorithm,mapping,np,size,us"))
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    assert yaml.safe_load(text)["import"]["files"][0]["collective"] == "bcast"
    assert any("the column 'Test' has short, which names no collective" in question for question in questions)


def test_a_table_of_several_collectives(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    rows = [(name, *row) for name in ("Broadcast", "Gather") for row in GRID if row[0] == "linear"]
    (tmp_path / "theirs" / "results.csv").write_text(joined(rows, "Type,algorithm,mapping,NP,size,latency"))
    text, _ = draft(tmp_path / "theirs", "theirs", "orfeo-thin", CONFIGURATION)
    entries = yaml.safe_load(text)["import"]["files"]
    assert [entry["collective"] for entry in entries] == ["bcast", "gather"]
    assert {entry["columns"]["collective"] for entry in entries} == {"Type"}
    linear = [(*row[:4], float(row[4])) for row in GRID if row[0] == "linear"]
    assert sorted(read(tmp_path / "theirs")) == sorted(linear + linear)


def test_what_could_not_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "bcast.csv").write_bytes(joined(GRID).encode("utf-16"))
    with pytest.raises(StudyError, match="contains no CSV file.*the file is UTF-16; convert it"):
        draft(tmp_path, "theirs", None, CONFIGURATION)


def test_raw_output_with_numbers_in_the_names(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    for number, mapping, ranks in ((1, "core", 2), (2, "node", 4)):
        (tmp_path / "theirs" / f"bcast{number}_{mapping}_np{ranks}.out").write_text(
            "# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n1        0.25\n2        0.50\n"
        )
    assert read(tmp_path / "theirs") == [
        ("linear", "core", 2, 1, 0.25), ("linear", "core", 2, 2, 0.5), ("chain", "node", 4, 1, 0.25), ("chain", "node", 4, 2, 0.5)
    ]  # fmt: skip


def test_raw_output_of_jobs(tmp_path: Path) -> None:
    """Files without an ending, or with the job's number as ending, below the output of the job itself."""
    job = "srun: job 4711 queued\nWARNING: No preset parameters\n\n"
    (tmp_path / "theirs" / "np4").mkdir(parents=True)
    for name, us in (
        ("osu_bcast_linear_core.o4711", 0.25),
        ("osu_bcast_linear_core.o4712", 0.27),
        ("osu_bcast_chain_core", 0.5),
    ):
        (tmp_path / "theirs" / "np4" / name).write_text(
            f"{job}# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n1        {us}\n"
        )
    (tmp_path / "theirs" / "osu_bcast").write_bytes(b"\x7fELF\0\0")
    _, questions = draft(tmp_path / "theirs", "theirs", "orfeo-thin", CONFIGURATION)
    assert any(
        "differ only in * (a date, the number of a job or a run) are launches of the same cells" in text
        for text in questions
    )
    found = [("chain", 0.5), ("linear", 0.25), ("linear", 0.27)]
    assert sorted(read(tmp_path / "theirs")) == [(name, "core", 4, 1, us) for name, us in found]


def output(title: str, *times: float) -> str:
    """Return raw output of OSU Micro-Benchmarks for sizes from 1 on."""
    rows = "".join(f"{2**k:<10d}{us:18.2f}\n" for k, us in enumerate(times))
    return f"\n# OSU MPI {title} Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n{rows}"


def test_the_title_of_raw_output_names_the_collective(tmp_path: Path) -> None:
    """Also of the outputs of several benchmarks that a job wrote to one file."""
    folder = tmp_path / "theirs" / "linear" / "core_np4"
    folder.mkdir(parents=True)
    titles = ("Broadcast", "All-to-All Personalized Exchange", "Reduce", "Multi-Broadcast of a friend")
    (folder / "slurm-4711.out").write_text("".join(output(title, k + 0.25) for k, title in enumerate(titles)))
    text, questions = draft(tmp_path / "theirs", "theirs", "orfeo-thin", CONFIGURATION)
    assert [entry["collective"] for entry in yaml.safe_load(text)["import"]["files"]] == ["bcast", "alltoall", "reduce"]
    assert questions == ["mpi, mpi_version, suite_version: the software of the measurements"]
    found = read(tmp_path / "theirs")
    assert sorted(found) == [("linear", "core", 4, 1, us) for us in (0.25, 1.25, 2.25)]
    assert omb.titled("# OSU MPI-CUDA Non-blocking Allreduce Latency Test v7.4") == "iallreduce"
    assert omb.titled("# OSU MPI Bandwidth Test v7.4") == "bw"


def test_raw_output_of_another_collective_than_the_name_says(tmp_path: Path) -> None:
    """A script for reductions called osu_allreduce."""
    (tmp_path / "reduce_linear_core_np4.txt").write_text(output("Allreduce", 0.5, 0.6))
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    assert yaml.safe_load(text)["import"]["files"][0]["collective"] == "allreduce"
    assert any("output of allreduce, although the names of the files say reduce" in text for text in questions)


def test_numbers_in_names_are_asked_about(tmp_path: Path) -> None:
    for name in ("4", "8"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bcast_linear_core.csv").write_text("Size,Latency (us)\n1,0.2\n")
    _, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    assert any(text.endswith("whether 4, 8 in the names are numbers of processes") for text in questions)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run[1]/bcast.csv", "run\\[1\\]/bcast.csv: \\[\\] in a path is part of a pattern; rename the file"),
        ("bcast.xlsx", "bcast.xlsx: a spreadsheet is not read; export its sheets as CSV"),
        ("bcast.csv", "bcast.csv: line 1: unclosed quote"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('"Algorithm,Processes,Size,Latency\nlinear,2,1,0.5\n')
    with pytest.raises(StudyError, match=message):
        draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)


def test_control_characters_of_a_damaged_file_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "bcast.csv").write_text("Algorithm,Mapping,np,Size,us,\x1b[1m\x07\nlinear,core,2,1,0.5,x\n")
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    assert yaml.safe_load(text)["import"]["files"] and "\x1b" not in "".join(questions)


def test_commas_of_thousands_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "bcast.csv").write_text(
        'Algorithm,Mapping,np,Size,us\nlinear,core,2,1,0.5\nlinear,core,2,8,"1,234.5"\n'
    )
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    assert "decimal" not in text
    assert any("the commas in '1,234.5'; numbers must not have separators of thousands" in text for text in questions)


def test_the_name_of_a_drafted_study(checkout: Checkout) -> None:
    checkout.write("my results (1)/bcast_core.csv", "Algorithm,Processes,Size,Latency (us)\nchain,2,1,0.2\n")
    done = must(checkout.collstudy("import", "my results (1)"))
    assert done.stdout.endswith("/config/studies/my-results-1.yaml\n")
    done = checkout.collstudy("import", "my results (1)", "--name", "my results")
    assert (done.returncode, done.stderr[:45]) == (2, "error: a study cannot be called 'my results';")
    done = checkout.collstudy("import", "my results (1)/bcast_core.csv")
    assert done.stderr == "error: my results (1)/bcast_core.csv: a file; name its folder\n"


def test_files_of_several_machines_are_asked_about(tmp_path: Path) -> None:
    for names, asked in ((("bcastEPYC", "bcast_core"), False), (("barrierTHIN",), True)):
        for name in names:
            (tmp_path / f"{name}.csv").write_text(joined(GRID, "algorithm,mapping,np,size,latency"))
        _, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
        assert ("files: their names say epyc and thin; give each machine a study of its own" in questions) is asked


def test_several_outputs_in_a_file_are_asked_about(tmp_path: Path) -> None:
    """A script that appends the outputs of a loop to one file; point-to-point tests have no algorithm."""
    output = "# OSU MPI Latency Test v7.4\n# Size       Avg Latency(us)\n2        0.14\n4        0.15\n"
    (tmp_path / "latency.txt").write_text(output + "Testing with cores: 0 and 4\n" + output)
    _, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    asked = "\n".join(questions)
    assert "whether the 2 outputs in a file are launches of the same cells" in asked
    assert "algorithm" not in asked and "processes" not in asked and "mapping; it can be set" in asked


def test_an_algorithm_that_nothing_names_is_not_the_default(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "bcast_mine_core.csv").write_text("Processes,Size,Latency (us)\n2,1,0.2\n")
    with pytest.raises(StudyError, match="files.0.constants.algorithm: still '\\?', as drafted; replace it$"):
        read(tmp_path / "theirs")


def test_what_a_draft_leaves_open_is_named_when_it_is_run(tmp_path: Path) -> None:
    config = tmp_path / "config"
    shutil.copytree(ROOT / "config", config)
    text = "title: t\nquestion: '?'\nmachine: '?'\nimport: {files: [{path: x.csv, collective: '?'}]}\n"
    (config / "studies" / "theirs.yaml").write_text(text)
    with pytest.raises(
        StudyError, match=r"theirs.yaml, line 3: machine: still '\?', as drafted; replace it \(1 more\)"
    ):
        Configuration(config).study("theirs")


def test_numbers_of_algorithms_need_a_version(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "bcast1_core.csv").write_text("Processes,Size,Latency\n2,1,0.2\n")
    with pytest.raises(StudyError, match="`algorithms: numbers` needs import.mpi_version"):
        read(tmp_path / "theirs", version=None)


def test_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(
        StudyError,
        match="contains no CSV file, no output of OSU Micro-Benchmarks, Intel MPI Benchmarks or nccl-tests, and no archive of",
    ):
        draft(tmp_path, "theirs", None, CONFIGURATION)


def test_a_collective_in_a_folder_s_name_is_asked_about(tmp_path: Path) -> None:
    for name in ("gather_data/output.csv", "gather_data/bcast_all.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(joined(GRID, "algorithm,mapping,np,size,latency"))
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    found = {Path(entry["path"]).name: entry["collective"] for entry in yaml.safe_load(text)["import"]["files"]}
    assert found == {"output.csv": "gather", "bcast_all.csv": "bcast"}
    (asked,) = (question for question in questions if "whether the collective is" in question)
    assert asked == "gather_data/output.csv (1 file): whether the collective is gather, as a folder's name says"


def test_probable_algorithms_are_asked_about(tmp_path: Path) -> None:
    rows = [(name, "core", 2, 0.5) for name in ("ring", "ignore", "basic", "tree")]
    (tmp_path / "barrier.csv").write_text(joined(rows, "algorithm,mapping,np,latency"))
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    (entry,) = yaml.safe_load(text)["import"]["files"]
    assert entry["algorithms"] == {"ring": "double_ring", "ignore": "default", "basic": "basic", "tree": "tree"}
    asked = "\n".join(questions)
    assert "whether the algorithm ring is double_ring" in asked and "whether the algorithm ignore is default" in asked
    assert "whether basic is Open MPI's component of that name" in asked and "tree" not in asked


def test_sizes_and_rows_that_are_missing_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "bcast_linear_core.csv").write_text("Processes,Latency,Notes\n2,0.5,\n4,0.7\n")
    (tmp_path / "notes.txt").write_text("measured on a Sunday\n")
    _, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    asked = "\n".join(questions)
    assert "size_bytes; it can be set in `constants` or `by_row`" in asked
    assert "1 of 2 rows has another number of fields than the header" in asked
    assert "1 file without a table of times that is recognised: notes.txt" in asked


def test_ranks_behind_the_mapping_by_node(tmp_path: Path) -> None:
    """chain_node_16 beside chain_core_16 is the mapping and 16 ranks; without the latter, 16 nodes."""
    for mapping in ("core", "node"):
        for ranks in (2, 16):
            (tmp_path / f"bcast_chain_{mapping}_{ranks}.out").write_text(
                "# OSU MPI Broadcast Latency Test v7.3\n# Size       Avg Latency(us)\n1                       0.21\n"
            )
    text, questions = draft(tmp_path, "theirs", "orfeo-thin", CONFIGURATION)
    (entry,) = yaml.safe_load(text)["import"]["files"]
    assert entry["path"] == f"{tmp_path}/bcast_{{algorithm}}_{{mapping}}_{{processes}}.out"
    assert any("whether 2, 16 in the names are numbers of processes" in question for question in questions)


def test_joined_files_repeat_their_header(tmp_path: Path) -> None:
    """As of `cat *.csv`; a header whose columns have another order would exchange them."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    header = "algorithm,mapping,np,size,latency"
    (folder / "bcast.csv").write_text(joined(GRID[:20], header) + joined(GRID[20:], header))
    assert len(read(folder)) == len(GRID)
    (folder / "bcast.csv").write_text(
        joined(GRID[:20], header) + joined(GRID[20:], "algorithm,mapping,size,np,latency")
    )
    with pytest.raises(StudyError, match="line 22: a second header, whose columns have another order; split the file"):
        read(folder)


def test_ranks_of_a_node_need_the_number_of_nodes(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "bcast.csv").write_text(joined(GRID, "algorithm,mapping,ppn,size,latency"))
    _, questions = draft(folder, "theirs", "orfeo-thin", CONFIGURATION)
    assert "bcast.csv (1 file): nodes; it can be set in `constants`" in questions
    with pytest.raises(StudyError, match="no column, constant or part of the file's name gives nodes"):
        read(folder)
