"""Where a program calls its collectives, in words: function, and line of its source where its objects have debug information."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from collstudy.base.commands import ask


@dataclass(frozen=True)
class Site:
    """A call in an object (program or library): its offset, as in the object's file, and the exported function around it."""

    offset: str
    symbol: str
    path: Path

    @property
    def place(self) -> str:
        """Return object and offset."""
        return f"{self.path.name}+{self.offset}"


class CallSites:
    """Call sites, numbered in the order in which they are first seen: an object has the same ones in all ranks."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sites: dict[str, Site] = {}

    def number(self, text: str) -> int:
        """Return the number of a site, from its text in a trace (site.c: offset, symbol or `-`, path of the object)."""
        if text not in self._numbers:
            offset, symbol, path = text.split(" ", 2)
            site = Site(offset, symbol, Path(path))
            self._sites.setdefault(site.place, site)
            self._numbers[text] = list(self._sites).index(site.place)
        return self._numbers[text]

    def described(self) -> list[str]:
        """Return each site as `function, file.c:12`, or `function, object+0x1a2b` without debug information, in their order.

        It needs the binary utilities of the compiler (addr2line, readelf, c++filt); without them functions have their names in the
        object.
        """
        by_object: dict[Path, list[Site]] = defaultdict(list)
        for site in self._sites.values():
            by_object[site.path].append(site)
        found: dict[str, str] = {}
        for path, sites in by_object.items():
            found |= _in_object(path, sites)
        return [found[place] for place in self._sites]


def _in_object(path: Path, sites: list[Site]) -> dict[str, str]:
    """Return the description of each site of an object, by its place."""
    lines = ask(["addr2line", "-f", "-C", "-e", path, *(site.offset for site in sites)]).stdout.splitlines()
    if len(lines) != 2 * len(sites):
        lines = ["??", "??:0"] * len(sites)
    # Of a stripped object, addr2line names the exported function before the site, although the site may be in another one.
    named = " .symtab " in ask(["readelf", "-SW", path]).stdout
    found = {}
    for site, function, line in zip(sites, lines[::2], lines[1::2], strict=True):
        source = re.match(r"(?:.*/)?([^/]+:[1-9]\d*)", line)
        if not (source or named) or function == "??":
            function = _demangled(site.symbol)
        where = source[1] if source else site.place
        found[site.place] = f"{function}, {where}" if function else where
    return found


def _demangled(symbol: str) -> str:
    """Return the name of a function as in its source; "" for `-`."""
    if symbol == "-":
        return ""
    return ask(["c++filt", symbol]).stdout.strip() or symbol
