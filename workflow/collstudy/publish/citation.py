"""Read authors, version and licence from CITATION.cff and git, for archives and catalogues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collstudy.base.commands import ask
from collstudy.base.lazy import lazy
from collstudy.base.paths import ROOT

yaml = lazy("yaml")


@dataclass(frozen=True)
class Author:
    """A person or a group."""

    name: str
    email: str = ""

    def described(self) -> dict[str, str]:
        """Return what is known of the author."""
        return {"name": self.name} | ({"email": self.email} if self.email else {})


@dataclass(frozen=True)
class Citation:
    """How to cite the project."""

    title: str
    version: str
    released: str
    license: str
    authors: tuple[Author, ...]
    keywords: tuple[str, ...]
    repository: str = ""


def read_citation() -> Citation:
    """Return the content of CITATION.cff; in a git repository the authors are those of git, ordered by number of commits."""
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    named = tuple(
        Author(
            one.get("name") or f"{one.get('given-names', '')} {one.get('family-names', '')}".strip(),
            one.get("email", ""),
        )
        for one in said["authors"]
    )
    return Citation(
        said["title"], str(said["version"]), str(said["date-released"]), said["license"], _authors_of_git() or named,
        tuple(said.get("keywords", ())), said.get("repository-code", ""),
    )  # fmt: skip


def _authors_of_git() -> tuple[Author, ...]:
    """Return the authors of all commits; () without all of them: in a shallow clone, or if the checkout is not a repository itself,
    for it may be unpacked inside another one.
    """
    shallow = ask(["git", "rev-parse", "--is-shallow-repository"], folder=ROOT).stdout.strip() == "true"
    if shallow or not (ROOT / ".git").exists():
        return ()
    # The encoding of a user's terminal is not that of this program.
    printed = ask(["git", "-c", "i18n.logOutputEncoding=UTF-8", "shortlog", "-sne", "HEAD"], folder=ROOT).stdout
    lines = [line.split("\t", 1)[1] for line in printed.splitlines() if "\t" in line]
    return tuple(Author(line.partition(" <")[0], line.partition(" <")[2].rstrip(">")) for line in lines)


def cff(cited: Citation, text: str) -> str:
    """Return CITATION.cff with these authors instead of its own; *text* is the original file."""
    document = yaml.safe_load(text)
    document["authors"] = [author.described() for author in cited.authors]
    document["date-released"] = cited.released
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def codemeta(cited: Citation) -> dict[str, Any]:
    """Return codemeta.json (CodeMeta 3.0)."""
    found: dict[str, Any] = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": cited.title,
        "version": cited.version,
        "dateModified": cited.released,
        "license": f"https://spdx.org/licenses/{cited.license}",
        "author": [{"@type": "Person", **author.described()} for author in cited.authors],
        "keywords": list(cited.keywords),
        "programmingLanguage": ["Snakemake", "Python", "R", "C"],
        "operatingSystem": "Linux",
    }
    return found | ({"codeRepository": cited.repository} if cited.repository else {})


def zenodo(cited: Citation, description: str) -> dict[str, Any]:
    """Return .zenodo.json: the metadata that Zenodo reads from a repository's release."""
    return {
        "title": cited.title,
        "version": cited.version,
        "upload_type": "software",
        "publication_date": cited.released,
        "description": description,
        "license": cited.license,
        "access_right": "open",
        "creators": [{"name": author.name} for author in cited.authors],
        "keywords": list(cited.keywords),
    }
