"""Check the Spack files without Spack: `python -m collstudy spack-check [CHECKOUT]`.

This finds errors that Spack does not report: roots with variants, recipes that are not pinned, an include that does
not exist, a package's `require` that replaces that of `all`, a lock that belongs to another manifest or to an earlier
state of the cluster (Spack uses a lock unchanged unless the roots have changed).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collstudy.base.lazy import lazy

yaml = lazy("yaml")


#: A root specification: a name and one exact version, nothing else.
ROOT_SPEC = re.compile(r"([a-z0-9][a-z0-9-]*)@=?([0-9][\w.-]*)")
COMMIT = re.compile(r"[0-9a-f]{40}")
#: Variants that Open MPI loses silently unless they are stated.
STATED = {"openmpi": ("fabrics=", "schedulers=", "internal-pmix")}
#: Packages that the cluster must provide: other builds do not work, or are slow.
EXTERNAL = ("slurm", "ucx", "hwloc")
CLUSTER_VARIABLE = "${COLLSTUDY_CLUSTER}"
#: The folder of spack/ that does not describe a cluster: R's environment.
R_ENVIRONMENT = "r"
#: Packages included in r (built without the recommended ones) and r-tidyverse.
R_BASE = {"grDevices", "graphics", "grid", "methods", "parallel", "splines", "stats", "utils"}
R_TIDYVERSE = {"broom", "dplyr", "ggplot2", "purrr", "readr", "rlang", "scales", "stringr", "tibble", "tidyr", "vctrs"}


def check(checkout: Path) -> list[str]:
    """Return all problems with the Spack files of *checkout*, one sentence each."""
    problems: list[str] = []
    manifests = {}
    for path in (checkout / "spack.yaml", checkout / "spack" / R_ENVIRONMENT / "spack.yaml"):
        try:
            manifests[path] = yaml.safe_load(path.read_text(encoding="utf-8"))["spack"]
        except FileNotFoundError:
            problems.append(f"{_shown(path, checkout)}: no such file")
        except (yaml.YAMLError, TypeError, KeyError) as error:
            problems.append(f"{_shown(path, checkout)}: not a Spack environment: {error}")
    for path, manifest in manifests.items():
        findings = [*_check_roots(manifest), *_check_pins(manifest), *_check_requirements(manifest)]
        findings += _check_includes(manifest, path.parent)
        problems += [f"{_shown(path, checkout)}: {finding}" for finding in findings]
        if path.parent.name == R_ENVIRONMENT:
            problems += [f"{_shown(path, checkout)}: {finding}" for finding in _check_imports(manifest, checkout)]
    if len({_commit(manifest) for manifest in manifests.values()}) > 1:
        problems.append("spack.yaml and spack/r/spack.yaml pin different commits of the package repository")
    for folder in clusters(checkout):
        externals = folder / "packages.yaml"
        problems += [f"{_shown(externals, checkout)}: {finding}" for finding in _check_externals(externals)]
    for lock in locks(checkout):
        manifest = manifests.get(lock.parent / "spack.yaml") or manifests.get(checkout / "spack.yaml")
        if manifest:
            findings = [*_check_lock(lock, manifest), *_check_locked_externals(lock)]
            problems += [f"{_shown(lock, checkout)}: {finding}; remove it and concretize again" for finding in findings]
    return problems


def clusters(checkout: Path) -> list[Path]:
    """Return the folders of `spack/` that describe a cluster."""
    folders = (path for path in (checkout / "spack").glob("*") if path.is_dir())
    return sorted(path for path in folders if path.name != R_ENVIRONMENT)


def locks(checkout: Path) -> list[Path]:
    """Return all existing locks: the one in use, and the stored one of each cluster."""
    return sorted([*checkout.glob("spack.lock"), *checkout.glob("spack/*/spack.lock")])


def roots(manifest: dict[str, Any]) -> dict[str, str]:
    """Return name and version of each plain root."""
    found = (ROOT_SPEC.fullmatch(str(spec)) for spec in manifest.get("specs") or [])
    return {match[1]: match[2] for match in found if match}


def _shown(path: Path, checkout: Path) -> str:
    return str(path.relative_to(checkout))


def _builtin(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the entry for the repository of recipes."""
    builtin = (manifest.get("repos") or {}).get("builtin")
    return builtin if isinstance(builtin, dict) else {}


def _commit(manifest: dict[str, Any]) -> str:
    return str(_builtin(manifest).get("commit", ""))


def _check_roots(manifest: dict[str, Any]) -> Iterator[str]:
    if not manifest.get("specs"):
        yield "specs is empty"
    for spec in manifest.get("specs") or []:
        if not isinstance(spec, str) or not ROOT_SPEC.fullmatch(spec):
            yield f"root {spec!r} is not a plain name@version; variants belong in packages: {{name: {{require: ...}}}}"


def _check_pins(manifest: dict[str, Any]) -> Iterator[str]:
    commit = _commit(manifest)
    if not COMMIT.fullmatch(commit):
        yield "repos: builtin: commit is not 40 hexadecimal digits; a lock does not record the recipes"
    elif commit not in str(_builtin(manifest).get("destination")):
        yield "repos: builtin: destination does not name the commit; Spack uses any existing clone"


def _requirements(packages: dict[str, Any], name: str) -> str:
    """Return all requirements of a package as one text."""
    required = (packages.get(name) or {}).get("require") or []
    entries = [required] if isinstance(required, str) else required
    return " ".join(str(entry.get("spec", entry) if isinstance(entry, dict) else entry) for entry in entries)


def _check_requirements(manifest: dict[str, Any]) -> Iterator[str]:
    packages = manifest.get("packages") or {}
    target = re.search(r"target=\S+", _requirements(packages, "all"))
    for name in packages:
        text = _requirements(packages, name)
        if name != "all" and text and target and target[0] not in text:
            yield f"packages: {name}: require replaces that of all; repeat {target[0]}"
    for name, version in roots(manifest).items():
        text = _requirements(packages, name)
        pinned = re.search(r"@=?([\w.-]+)", text)
        if pinned and pinned[1] != version:
            yield f"packages: {name}: requires {pinned[1]}, the root is {version}"
        for part in STATED.get(name, ()):
            if part not in text:
                yield f"packages: {name}: require does not state {part.rstrip('=')}"


def _check_includes(manifest: dict[str, Any], folder: Path) -> Iterator[str]:
    for entry in manifest.get("include") or []:
        text = entry["path"] if isinstance(entry, dict) else str(entry)
        names = [path.name for path in clusters(folder)] if CLUSTER_VARIABLE in text else [""]
        if not names:
            yield f"include {text}: spack/ has no folder of a cluster"
        for name in names:
            path = folder / text.replace(CLUSTER_VARIABLE, name)
            if not path.exists():
                yield f"include {text}: {path.relative_to(folder)} does not exist"


def _check_imports(manifest: dict[str, Any], checkout: Path) -> Iterator[str]:
    """Check that every package that the analysis imports is a root, or is included in R or the tidyverse."""
    description = (checkout / "workflow" / "analysis" / "DESCRIPTION").read_text(encoding="utf-8")
    imports = re.search(r"^Imports:((?:.|\n[ \t])*)", description, re.MULTILINE)
    names = re.findall(r"[A-Za-z][\w.]*", re.sub(r"\([^)]*\)", "", imports[1])) if imports else []
    have = {name.removeprefix("r-") for name in roots(manifest)}
    for name in names:
        if name not in R_BASE | R_TIDYVERSE and name.lower() not in have:
            yield f"workflow/analysis imports {name}, but r-{name.lower()} is not a root"


def _packages(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["packages"]


def _check_externals(path: Path) -> Iterator[str]:
    if not path.exists():
        return  # reported by the check of the includes
    try:
        packages = _packages(path)
    except (yaml.YAMLError, TypeError, KeyError) as error:
        yield f"not a packages.yaml: {error}"
        return
    for name in EXTERNAL:
        package = packages.get(name) or {}
        if not package.get("externals"):
            yield f"{name} is not external; it must be provided by the cluster"
        elif package.get("buildable", True):
            yield f"{name}: buildable is not false, so Spack may build it itself"
        for external in package.get("externals") or []:
            if not external.get("prefix") and not external.get("modules"):
                yield f"{name}: {external.get('spec')} has neither prefix nor modules"


def _check_lock(path: Path, manifest: dict[str, Any]) -> Iterator[str]:
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
        concrete = [lock["concrete_specs"][entry["hash"]] for entry in lock["roots"]]
    except (ValueError, KeyError, TypeError) as error:
        yield f"not a spack.lock: {error!r}"
        return
    wanted = roots(manifest)
    found = {spec["name"]: spec for spec in concrete}
    for name in sorted(wanted.keys() - found.keys()):
        yield f"{name}@{wanted[name]} is a root of the manifest, not of the lock"
    for name in sorted(found.keys() - wanted.keys()):
        yield f"{name} is a root of the lock, not of the manifest"
    for name in sorted(wanted.keys() & found.keys()):
        version, target = found[name]["version"], found[name]["arch"]["target"]
        # A generic target, such as x86_64_v3, is a name; a specific processor, such as icelake, is an object with features.
        target = target["name"] if isinstance(target, dict) else target
        if version != wanted[name]:
            yield f"{name}: locked at {version}, the manifest says {wanted[name]}"
        required = _requirements(manifest.get("packages") or {}, name)
        for problem in _disagreements(required, {**found[name]["parameters"], "target": target}):
            yield f"{name}: {problem}"


def _check_locked_externals(path: Path) -> Iterator[str]:
    """Check that the externals in the lock of a cluster agree with the cluster's current packages.yaml."""
    try:
        packages = _packages(path.parent / "packages.yaml")
        specs = json.loads(path.read_text(encoding="utf-8"))["concrete_specs"].values()
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return  # not the lock of a cluster, or reported by the checks of the two files
    for spec in specs:
        if spec["name"] not in EXTERNAL:
            continue
        taken = spec.get("external") or {}
        known = [
            external.get("prefix", taken.get("path"))  # an external given as a module has no prefix here
            for external in packages.get(spec["name"], {}).get("externals") or []
            if str(external["spec"]).replace("@=", "@").split()[0] == f"{spec['name']}@{spec['version']}"
        ]
        if taken.get("path") not in known or not taken:
            place = taken.get("path", "a prefix of Spack")
            yield f"{spec['name']}@{spec['version']} in {place} is not in packages.yaml"


def _disagreements(required: str, parameters: dict[str, Any]) -> Iterator[str]:
    """Yield required variants that differ in the lock. A variant that the lock lacks does not exist in this version."""
    for key, value in re.findall(r"(?<![\w-])([a-z][\w-]*)=([\w,-]+)", required):
        if key in parameters:
            locked = parameters[key]
            values = {str(one) for one in locked} if isinstance(locked, list) else {str(locked)}
            if values != set(value.split(",")):
                yield f"locked with {key}={','.join(sorted(values))}, required is {value}"
    for sign, key in re.findall(r"([+~])([a-z][\w-]*)", required):
        if key in parameters and parameters[key] is not (sign == "+"):
            yield f"locked with {'~' if sign == '+' else '+'}{key}, required is {sign}{key}"
