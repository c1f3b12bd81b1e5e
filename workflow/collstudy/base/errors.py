"""The exception for problems that the user can correct."""

import difflib
import errno

#: What is wrong with a disk or with permissions, not with this project.
UNWRITABLE = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR,
    errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG,
)  # fmt: skip


class StudyError(Exception):
    """A problem with the input or the environment; the message states what is wrong, where, and what is allowed."""


def allowed(names, word: str = "") -> str:
    """Return *names*, sorted, as the end of an error message: "; known: a, b, c", preceded by the one that *word* may have meant."""
    return nearest(word, names) + "; known: " + (", ".join(sorted(str(n) for n in names)) or "none")


def check_known(name, known, said: str) -> None:
    """Raise StudyError if *name* is not one of *known*, with the message *said* and the known names."""
    if name not in known:
        raise StudyError(said + allowed(known, str(name)))


def nearest(word: str, known) -> str:
    """Return a suggestion for a misspelt word; "" if no known one is similar."""
    near = difflib.get_close_matches(word, sorted(map(str, known)), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""
