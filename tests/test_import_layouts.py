"""./study import: tables of the same cells in many layouts are read alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_imports import GRID, Import, drafted, joined, read, write


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


def by_columns(name: str, *keys: int) -> str:
    """Return the grid as a table with one column per value of several of its fields."""
    header = ["algorithm", "mapping", "processes", "size"]
    rest: dict[tuple, dict[str, str]] = {}
    for row in GRID:
        left = tuple(row[at] for at in range(4) if at not in keys)
        rest.setdefault(left, {})[name.format(*(row[at] for at in keys))] = row[4]
    columns = list(next(iter(rest.values())))
    names = [header[at] for at in range(4) if at not in keys]
    return joined([(*of, *times.values()) for of, times in rest.items()], ",".join([*names, *columns]))


NUMBERS = {"linear": 1, "chain": 2}
LABELS = {"linear": "Basic Linear", "chain": "Chain"}


def named(pattern: str, header: str = "", fields: int = 2, separator: str = ",") -> dict[str, str]:
    """Return a file for each value of the grid's first *fields*, which its name has; the table has the others."""
    files = {}
    for i, key in enumerate(dict.fromkeys(row[:fields] for row in GRID)):
        a, m, p = (*key, 0)[:3]
        words = {"a": a, "number": NUMBERS[a], "m": m, "title": m.title(), "p": p, "half": p // 2}
        name = pattern.format(**words, i=i, day=18 + i, job=44711 + i)
        files[name] = joined([row[fields:] for row in GRID if row[:fields] == key], header, separator)
    return files


LAYOUTS = {
    "semicolons and labels": {
        "bcast.csv": joined([(LABELS[a], *rest) for a, *rest in GRID], "Algorithm;Mapping;Processes;Size;Latency (us)", ";")
    },
    "decimal commas": {
        "bcast.csv": joined([(*row, us.replace(".", ",")) for *row, us in GRID], "Algorithm;Mapping;Processes;Size;Latency (us)", ";")
    },
    "tabs": {"bcast.tsv": joined(GRID, "algo\tmap-by\tnp\tsize\tavg_us", "\t")},
    "gzip and comments": {
        "results_bcast.csv.gz": joined(GRID, "# measured on thin001\n\nAlgorithm,Allocation,#procs,Bytes,Time(us)")
    },
    "blanks and a commented header": named("{m}/bcast_{a}.dat", "# processes size latency_us", separator="   "),
    "no header": {"bcast.csv": joined(GRID)},
    "no header, minimum and maximum, a number": {
        "bcast.csv": joined([(NUMBERS[a], m, p, s, us, float(us) / 2, float(us) * 2) for a, m, p, s, us in GRID])
    },
    "no header, names of files": named("bcast_{a}_{m}.txt", separator=" "),
    "a number in the name": named("{title}_bcast_{number}.csv", "np,size,lat"),
    "names with a further word": {
        f"bcast{NUMBERS[a]}_{word}{m}.csv": joined([row[2:] for row in GRID if row[:2] == (a, m) and (row[3] == 64) == bool(word)],
            "Processes,Size,Latency")
        for a in NUMBERS for m in ("core", "node") for word in ("", "fixed_")
    },
    "wide by algorithm": {"bcast.csv": by_two("{} (us)", 0)},
    "wide by ranks": {"bcast.csv": by_two("np{}", 2)},
    "wide by size": {"bcast.csv": by_two("{}", 3)},
    "wide by ranks and size": {"bcast.csv": by_columns("np{}_{}B", 2, 3)},
    "wide by size and ranks": {"bcast.csv": by_columns("s={}_np={}", 3, 2)},
    "wide by algorithm and mapping": {"bcast.csv": by_columns("{} {}", 0, 1)},
    "wide by mapping and ranks": {"bcast.csv": by_columns("{}_{}procs", 1, 2)},
    "wide by all fields": {"bcast.csv": by_columns("{}-{}-np{}-{}", 0, 1, 2, 3)},
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
    "names of folders": named("bcast_{a}/{m}/output.csv", "number_processes,Size,AvgLatency(us)"),
    "the collective's letter and a number": named("bcast_data/b{number}_map_by_{m}.csv", "num_procs,Size,Latency"),
    "words and runs between dots": {
        f"{run}.reduce.{a}.{m}.csv": joined(
            [row[2:] for i, row in enumerate(GRID) if row[:2] == (a, m) and i % 2 == int(run[1]) - 1], "np,Size,Latency")
        for run in ("r1", "r2") for a in NUMBERS for m in ("core", "node")
    },
    "a word and a number apart": named("bcast_alg_{number}_{m}_np_{p}.csv", "Size,Latency", 3),
    "equal names, different headers": {
        "bcast_core.csv": joined([("x", a, *row) for a, _, *row in GRID if _ == "core"], '"",algorithm,np,size,latency'),
        "bcast_node.csv": joined([(a, *row) for a, _, *row in GRID if _ == "node"], "algorithm,ranks,size,latency"),
    },
    "a file for each algorithm with its column": {
        f"bcast_{a}_{m}.csv": joined([row for row in GRID if row[:2] == (a, m)], "algorithm,mapping,np,size,latency")
        for a in NUMBERS for m in ("core", "node")
    },
    "dates and jobs": named("2024-02-{day:02}/{a}/{m}/slurm-{job}_bcast_np_{p}.csv", "Size,us", 3),
    "times in the names and runs": named("20240218_1530{i:02}_bcast_{a}_By{title}_run{i}.csv", "np,Size,Latency (us)"),
    "ranks in the names of folders": named("{p}procs/bcast_{a}_{m}.csv", "Size,Latency (us)", 3),
    "nodes and ranks a node in the names": named("bcast/{a}/{m}/2nodes_{half}ppn.csv", "Size,Latency (us)", 3),
    "nodes as n": named("N2-ppn{half}/bcast_{a}_{m}.csv", "Size,Latency (us)", 3),
    "nodes x ranks a node in the names": named("bcast_{a}_{m}_2x{half}.csv", "Size,Latency (us)", 3),
    "sizes in the names": {
        f"bcast_{a}_{m}_{s}B.csv": joined([(row[2], row[4]) for row in GRID if row[:2] == (a, m) and row[3] == s], "np,Latency (us)")
        for a in NUMBERS for m in ("core", "node") for s in (1, 64, 1024, 4096)
    },
    "a file without the header of the others": named("bcast{number}_{m}.csv", "np,size,latency") | {
        "bcast2_node.csv": joined([row[2:] for row in GRID if row[:2] == ("chain", "node")])
    },
    "files with other columns": named("bcast{number}_{m}_np{p}.csv", "size,latency", 3) | {
        f"bcast2_node_np{p}.csv": joined([(*row[3:], 0.1, 9) for row in GRID if row[:3] == ("chain", "node", p)], "size,latency,min,max")
        for p in (2, 4)
    },
    "a column of the collective": {
        "results.csv": joined([("MPI_Bcast", *row) for row in GRID], "Collective,algorithm,mapping,np,size,latency")
    },
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path: Path, layout: str) -> None:
    found = read(write(tmp_path / "theirs", LAYOUTS[layout]))
    assert sorted(found) == sorted((*row[:4], float(row[4])) for row in GRID)


def test_what_is_guessed_is_asked(tmp_path: Path) -> None:
    _, questions = drafted(write(tmp_path, {"bcast.csv": joined(GRID)}))
    assert "no header line; whether its columns are algorithm, mapping, processes" in questions
    _, questions = drafted(write(tmp_path, {"bcast.csv": by_two("{}", 0)}))
    assert "whether the columns linear, chain are times by algorithm" in questions
    (entry,), questions = drafted(write(tmp_path, {"bcast.csv": by_columns("s={}_np={}", 3, 2)}))
    assert entry["wide"] == "s={size_bytes}_np={processes}"
    assert (
        "whether the columns s=1_np=2, s=64_np=2, s=1024_np=2, ..., s=4096_np=6 are times by size_bytes and processes"
        in questions
    )


@pytest.mark.parametrize(
    "titles",
    [
        "Benchmark: osu_bcast on THIN\nDate: 2024-05-01, 12:30\n\nAlgorithm,Allocation,Processes,Size,Latency",
        "mpirun -np 4 -x 100 osu_bcast,,,,\nthin001,,,,\nAlgorithm,Allocation,Processes,Size,Latency",
        "mpirun -np 4 -x 100, -i 1000 osu_bcast\nthin001\n# Algorithm,Allocation,Processes,Size,Latency",
    ],
)  # fmt: skip
def test_titles_above_a_table(tmp_path: Path, titles: str) -> None:
    folder = write(tmp_path / "theirs", {"bcast.csv": joined(GRID, titles)})
    _, questions = drafted(folder)
    assert "the meaning of the column" not in questions
    assert sorted(read(folder)) == sorted((*row[:4], float(row[4])) for row in GRID)


@pytest.mark.parametrize("place", ["path", "wide"])
def test_an_unknown_field_of_a_name_is_refused(tmp_path: Path, place: str) -> None:
    table = joined([("linear", "core", 1, 0.5)], "algorithm,mapping,size,np2")
    names = {"path": "bcast.csv", "wide": "np{{processes}}", place: "{{proceses}}" + ".csv" * (place == "path")}
    study = "\nimport:\n  files:\n    - {{path: '{folder}/%s', collective: bcast, %s, wide: '%s'}}\n"
    columns = "columns: {{algorithm: algorithm, mapping: mapping, size_bytes: size}}"
    message = Import(tmp_path).refused(study % (names["path"], columns, names["wide"]), {"bcast.csv": table})
    assert f"{place} has the unknown field 'proceses' (did you mean 'processes'?)" in message


def test_a_field_that_a_name_has_twice_is_the_same_text(tmp_path: Path) -> None:
    table = joined([("linear", "core", 1, 0.5, 0.7)], "algorithm,mapping,size,p2of2,p2of4")
    columns = "columns: {{algorithm: algorithm, mapping: mapping, size_bytes: size}}"
    study = "\nimport:\n  files:\n    - {{path: '{folder}/bcast.csv', collective: bcast, %s, wide: '%s'}}\n"
    theirs = Import(tmp_path)
    theirs.collect(study % (columns, "p{{processes}}of{{processes}}"), {"bcast.csv": table})
    assert [(row["processes"], row["latency_us"]) for row in theirs.rows()] == [("2", "0.5")]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("run[!2-9]/{{algorithm}}_?*[!ab].csv", ("run1/linear_1c.csv", "run2/chain_1c.csv", "run1/chain_1b.csv")),
        ("{{algorithm}}/{{algorithm}}.csv", ("linear/linear.csv", "chain/linear.csv")),
        ("{{algorithm}}_core.csv", ("linear_core.csv", "_core.csv")),
    ],
)
def test_only_files_with_all_fields_of_a_path_are_read(tmp_path: Path, path: str, names: tuple[str, ...]) -> None:
    """Other files would be of the default."""
    table = joined([(2, 1, 0.5)], "processes,size,latency")
    columns = "columns: {{processes: processes, size_bytes: size, latency_us: latency}}, constants: {{mapping: core}}"
    study = "\nimport:\n  files:\n    - {{path: '{folder}/%s', collective: bcast, %s}}\n"
    theirs = Import(tmp_path)
    theirs.collect(study % (path, columns), dict.fromkeys(names, table))
    assert [(row["algorithm"], row["launch"]) for row in theirs.rows()] == [("linear", "1")]
    lacking = f"files whose names lack a field of the path that matches them (first: {names[1].rpartition('/')[2]})"
    assert theirs.account["problems"] == ({} if "?" in path else {lacking: 1})


def test_columns_that_fit_no_pattern(tmp_path: Path) -> None:
    table = joined([("linear", "core", 1, 0.5)], "algorithm,mapping,size,np2")
    columns = "columns: {{algorithm: algorithm, mapping: mapping, size_bytes: size}}"
    study = "\nimport:\n  files:\n    - {{path: '{folder}/bcast.csv', collective: bcast, %s, wide: '%s'}}\n"
    theirs = Import(tmp_path)
    message = theirs.refused(study % (columns, "p{{processes}}"), {"bcast.csv": table})
    assert "bcast.csv: line 1: no column fits `wide`: p{processes}; known: algorithm, mapping, np2, size" in message
    theirs.collect(study % (columns, "np{{processes}}"))
    assert [(row["processes"], row["latency_us"]) for row in theirs.rows()] == [("2", "0.5")]
