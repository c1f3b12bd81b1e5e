"""A cost curve has the same value at a size in Python and in the simulator: both are tested with the same vectors."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from collstudy.launch.platforms import line
from conftest import ROOT, finish, must

#: Points (bytes, cost), a size, and the cost at that size.
VECTORS = [
    ([(1, 3.0)], 0, 3.0),
    ([(1, 3.0)], 1 << 20, 3.0),  # one point has no slope
    ([(16, 1.0), (32, 3.0)], 1, 1.0),  # below the first point
    ([(16, 1.0), (32, 3.0)], 16, 1.0),
    ([(16, 1.0), (32, 3.0)], 20, 1.5),
    ([(16, 1.0), (32, 3.0)], 32, 3.0),
    ([(16, 1.0), (32, 3.0)], 48, 5.0),  # beyond the last point: the last slope
    ([(16, 1.0), (32, 3.0), (64, 2.0)], 40, 2.75),
    ([(16, 1.0), (32, 3.0), (64, 2.0)], 96, 1.0),  # a falling last slope
    ([(16, 1.0), (32, 3.0), (64, 2.0)], 1 << 20, 0.0),  # but never below 0
    ([(1, 0.0847), (2048, 0.2857), (4096, 0.42), (1048576, 12.3214)], 1048592, 12.3214 + 16 * 11.9014 / 1044480),
]

PROGRAM = """
#include "curve.hpp"
#include <cstdio>
#include <cstdlib>
int main(int n, char **words) {
    Curve curve;
    for (int i = 2; i + 1 < n; i += 2)
        curve.add(std::atof(words[i]), std::atof(words[i + 1]));
    std::printf("%.17g\\n", curve.at(std::atof(words[1])));
}
"""


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("curve")
    (folder / "main.cpp").write_text(PROGRAM)
    headers = ROOT / "workflow" / "native" / "simulator"
    command = [compiler, "-std=c++17", "-I", headers, folder / "main.cpp", "-o", folder / "curve"]
    subprocess.run(command, check=True)
    return folder / "curve"


@pytest.mark.parametrize(("points", "size", "cost"), VECTORS)
def test_python(points: list[tuple[float, float]], size: float, cost: float) -> None:
    assert line(points, size) == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize(("points", "size", "cost"), VECTORS)
def test_the_simulator(curve: Path, points: list[tuple[float, float]], size: float, cost: float) -> None:
    words = [str(size), *(repr(number) for point in points for number in point)]
    printed = must(finish([curve, *words])).stdout
    assert float(printed) == pytest.approx(cost, rel=1e-12)
    assert float(printed) == pytest.approx(line(points, size), rel=1e-15)
