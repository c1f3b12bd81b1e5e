"""Start simulations as forks of one process that has already loaded SimGrid (workflow/native/simulator/starter.c).

Loading SimGrid, and smpirun's shell script, take a tenth of the time of a typical cell. The results have the same digits.
"""

from __future__ import annotations

import select
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from collstudy.launch.execute import Ended, LaunchFailed, Started, spawn
from collstudy.launch.toolchain import SIMULATED, built_for

PROGRAM = built_for(SIMULATED) / "simulator" / "starter"
#: How smpirun of SimGrid 4 writes two options of 3.32, both of which later options replace.
_SINCE_4 = {
    "--cfg=smpi/privatization:ON": "--cfg=smpi/privatization:1",
    "--cfg=precision/timing:1e-9": "--cfg=surf/precision:1e-9",
}


def without_smpirun(words: Sequence[str], environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return what smpirun would run for its command *words*: the program with the arguments of smpimain, and the environment.

    Covers the options that `simulator.prepare` uses, translated as by the script smpirun of SimGrid 3.32.
    """
    variables, values, options = dict(environment), {}, []
    position = 1
    while words[position].startswith("-"):
        if words[position].startswith("--"):
            options.append(words[position])
            position += 1
        else:
            values[words[position]] = words[position + 1]
            position += 2
    if "-wrapper" in values:
        variables |= dict(word.split("=", 1) for word in values["-wrapper"].split()[1:])
    variables["SMPI_GLOBAL_SIZE"] = values["-np"]
    program, *arguments = words[position:]
    return [
        program,
        "--cfg=smpi/privatization:1",
        f"--cfg=smpi/np:{values['-np']}",
        f"--cfg=smpi/hostfile:{values['-hostfile']}",
        "--cfg=surf/precision:1e-9",
        "--cfg=network/model:SMPI",
        *options,
        f"--cfg=smpi/tmpdir:{environment.get('TMPDIR') or '/tmp'}",
        values["-platform"],
        *arguments,
    ], variables


class Starter:
    """Starts simulations as forks of one process, or each by smpirun if the installed smpirun differs from what is known here."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        #: Whether simulations share a process; None before the first one.
        self.shares: bool | None = None

    def close(self) -> None:
        """End the process that has loaded SimGrid."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def start(self, words: Sequence[str], environment: dict[str, str], folder: Path) -> Started:
        """Start the simulation that smpirun's command *words* describes, in *folder*."""
        if self.shares is None:
            self.shares = PROGRAM.exists() and _as_smpirun(words, environment, folder)
        if not self.shares:
            return spawn(words, environment, folder)
        if self._process is None:
            # Unbuffered: select() would not see a line that was read ahead.
            self._process = subprocess.Popen(
                [PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
            )
        arguments, variables = without_smpirun(words, environment)
        output = folder / "simulated.txt"
        set_ = [f"{name}={value}" for name, value in variables.items()]
        texts = [str(folder), str(output), str(len(set_)), *set_, str(len(arguments)), *arguments]
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write("".join(f"{text}\0" for text in texts).encode(errors="surrogateescape"))
        except BrokenPipeError:
            self._give_up()
        return Started(int(self._answer("started")[0]), lambda limit: self._wait(output, limit))

    def _answer(self, kind: str) -> list[str]:
        """Return the numbers in the starter's next line, which must be of this *kind*. Raises LaunchFailed if the starter has ended."""
        assert self._process and self._process.stdout
        said, *numbers = self._process.stdout.readline().decode().split() or [""]
        if said != kind:
            self._give_up()
        return numbers

    def _give_up(self) -> NoReturn:
        self.close()
        raise LaunchFailed("crash: the program that starts simulations has ended")

    def _wait(self, output: Path, limit_s: float) -> Ended | None:
        assert self._process and self._process.stdout
        if not select.select([self._process.stdout], [], [], limit_s)[0]:
            return None
        status, memory = map(int, self._answer("ended"))
        return Ended(output.read_text(errors="replace"), status, memory * 1024 / 1e6)  # KiB to MB


def _as_smpirun(words: Sequence[str], environment: dict[str, str], folder: Path) -> bool:
    """Return whether smpirun would start what `without_smpirun` returns: with `-wrapper printf` it prints the command."""
    own = list(words)
    if "-wrapper" in own:
        place = own.index("-wrapper")
        del own[place : place + 2]
    own[1:1] = ["-wrapper", r"printf %s\n"]
    done = subprocess.run(own, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    printed = [_SINCE_4.get(word, word) for word in done.stdout.splitlines()[1:]]
    return printed == without_smpirun(words, environment)[0]
