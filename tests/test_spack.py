"""The Spack files of this checkout; each kind of mistake in them is reported."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from collstudy.cli import spack_check

CHECKOUT = Path(__file__).resolve().parents[1]
ARCH = {"platform": "linux", "platform_os": "debian12", "target": "x86_64_v3"}
ICELAKE = {"name": "icelake", "vendor": "GenuineIntel", "features": ["avx2"], "parents": ["cannonlake"]}
USR = {"path": "/usr", "module": None, "extra_attributes": {}}
#: The relevant part of a lock that Spack 1.2.0.dev0 created from these files (it also has dependencies and digests).
LOCK = {
    "_meta": {"file-type": "spack-lockfile", "lockfile-version": 6, "specfile-version": 5},
    "spack": {"version": "1.2.0.dev0", "type": "git", "commit": "9cf66332df3dd988248617fc93400045be59ebab"},
    "roots": [{"hash": "a", "spec": "openmpi@5.0.10"}, {"hash": "b", "spec": "osu-micro-benchmarks@7.5.2"}],
    "concrete_specs": {
        "a": {
            "name": "openmpi", "version": "5.0.10", "arch": ARCH, "namespace": "builtin",
            "parameters": {
                "cuda": False, "fabrics": ["ucx"], "internal-pmix": True, "memchecker": False, "rocm": False,
                "schedulers": ["slurm"], "cflags": [],
            },
        },
        "b": {
            "name": "osu-micro-benchmarks", "version": "7.5.2", "arch": ARCH, "namespace": "builtin",
            "parameters": {"cuda": False, "papi": False, "rocm": False, "cflags": []},
        },
        "c": {"name": "hwloc", "version": "2.9.0", "arch": ARCH, "parameters": {"cuda": False}, "external": USR},
        "d": {"name": "slurm", "version": "23-11-1-1", "arch": ARCH, "parameters": {}, "external": USR},
        "e": {"name": "ucx", "version": "1.15.0", "arch": ARCH, "parameters": {"rc": True}, "external": USR},
    },
}  # fmt: skip


@pytest.fixture
def copy(tmp_path):
    shutil.copy(CHECKOUT / "spack.yaml", tmp_path)
    shutil.copytree(CHECKOUT / "spack", tmp_path / "spack")
    (tmp_path / "workflow" / "analysis").mkdir(parents=True)
    shutil.copy(CHECKOUT / "workflow" / "analysis" / "DESCRIPTION", tmp_path / "workflow" / "analysis")
    return tmp_path


def test_the_files_of_this_checkout_are_sound():
    assert spack_check.check(CHECKOUT) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("spack.yaml", "- openmpi@5.0.10", "- openmpi@5.0.10 fabrics=ucx", "not a plain name@version"),
        ("spack.yaml", "- openmpi@5.0.10", "- openmpi", "not a plain name@version"),
        ("spack.yaml", "- openmpi@5.0.10", "- openmpi@5.0.9", "requires 5.0.10, the root is 5.0.9"),
        ("spack.yaml", "commit: d4f7c711", "commit: v4f7c711", "40 hexadecimal digits"),
        ("spack.yaml", "commit: d4f7", "commit: d4f8", "pin different commits"),
        ("spack.yaml", "package_repos/d4f7", "package_repos/d4f8", "destination does not name the commit"),
        ("spack/r/spack.yaml", "      destination: ", "      # ", "destination does not name the commit"),
        ("spack.yaml", "fabrics=ucx ", "", "does not state fabrics"),
        ("spack.yaml", "+internal-pmix ", "", "does not state internal-pmix"),
        ("spack.yaml", "~papi target=x86_64_v3", "~papi", "osu-micro-benchmarks: require replaces that of all"),
        ("spack.yaml", "/packages.yaml", "/externals.yaml", "spack/orfeo/externals.yaml does not exist"),
        ("spack.yaml", "spack:", "spack: [", "spack.yaml: not a Spack environment"),
        ("spack/orfeo/packages.yaml", "  hwloc:", "  hwlok:", "hwloc is not external"),
        ("spack/orfeo/packages.yaml", "buildable: false", "buildable: true", "buildable is not false"),
        ("spack/orfeo/packages.yaml", ", prefix: /usr", "", "neither prefix nor modules"),
        ("spack/r/spack.yaml", "- r@4.5.3", "- r@4.5.3 +X", "spack/r/spack.yaml: root 'r@4.5.3 +X'"),
        ("spack/r/spack.yaml", "    - r-mgcv@1.9-4\n", "", "imports mgcv, but r-mgcv is not a root"),
        (
            "workflow/analysis/DESCRIPTION",
            "purrr,",
            "purrr (>= 1.0),\n    zoo,",
            "imports zoo, but r-zoo is not a root",
        ),
    ],
)
def test_a_mistake_is_named(copy, file, old, new, message):
    path = copy / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert any(message in problem for problem in spack_check.check(copy)), spack_check.check(copy)


def test_the_r_of_spack_has_all_that_the_analysis_imports():
    description = (CHECKOUT / "workflow" / "analysis" / "DESCRIPTION").read_text()
    imports = re.search(r"^Imports:(.*?)^\S", description, re.MULTILINE | re.DOTALL)[1]
    names = {name.strip().partition(" ")[0] for name in imports.split(",")}
    # Recommended packages are part of R, but Spack pins their versions.
    r_itself = {"grDevices", "grid", "parallel", "stats", "utils"}
    tidyverse = {
        "dplyr",
        "ggplot2",
        "purrr",
        "readr",
        "rlang",
        "tibble",
        "tidyr",
        "scales",
        "vctrs",
    }  # directly or through ggplot2
    manifest = yaml.safe_load((CHECKOUT / "spack" / "r" / "spack.yaml").read_text())["spack"]
    roots = spack_check.roots(manifest).keys()
    assert "r-tidyverse" in roots and {f"r-{name}" for name in names - r_itself - tidyverse} <= roots


def test_a_missing_manifest_is_named(copy):
    (copy / "spack" / "r" / "spack.yaml").unlink()
    assert spack_check.check(copy) == ["spack/r/spack.yaml: no such file"]


@pytest.mark.parametrize("place", ["spack.lock", "spack/orfeo/spack.lock"])
def test_a_lock_that_agrees_is_sound(copy, place):
    (copy / place).write_text(json.dumps(LOCK))
    assert spack_check.check(copy) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lock: lock["concrete_specs"]["a"].update(version="5.0.9"), "locked at 5.0.9"),
        (lambda lock: lock["concrete_specs"]["a"]["parameters"].update(fabrics=["none"]), "locked with fabrics=none"),
        (lambda lock: lock["concrete_specs"]["a"]["parameters"].update({"internal-pmix": False}), "~internal-pmix"),
        (lambda lock: lock["concrete_specs"]["b"]["arch"].update(target=ICELAKE), "locked with target=icelake"),
        (lambda lock: lock["concrete_specs"]["c"].pop("external"), "hwloc@2.9.0 in a prefix of Spack is not in"),
        (lambda lock: lock["concrete_specs"]["d"]["external"].update(path="/opt/slurm"), "in /opt/slurm is not"),
        (lambda lock: lock["concrete_specs"]["e"].update(version="1.17.0"), "ucx@1.17.0 in /usr is not"),
        (lambda lock: lock["roots"].pop(), "root of the manifest, not of the lock"),
        (lambda lock: lock["concrete_specs"]["b"].update(name="imb"), "imb is a root of the lock"),
        (lambda lock: lock.pop("roots"), "not a spack.lock"),
    ],
)
def test_a_lock_of_another_manifest_is_named(copy, change, message):
    lock = json.loads(json.dumps(LOCK))
    change(lock)
    (copy / "spack" / "orfeo" / "spack.lock").write_text(json.dumps(lock))
    problems = spack_check.check(copy)
    assert any(message in problem and "spack/orfeo/spack.lock" in problem for problem in problems), problems


def test_the_manifests_are_yaml_that_spack_reads():
    for path in (CHECKOUT / "spack.yaml", CHECKOUT / "spack" / "r" / "spack.yaml"):
        assert set(yaml.safe_load(path.read_text())["spack"]) <= {
            "specs", "include", "repos", "packages", "concretizer", "view",
        }  # fmt: skip
