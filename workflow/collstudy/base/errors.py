"""The exception for everything that the user can correct."""


class StudyError(Exception):
    """A problem of the input or the environment; the text states what is wrong, where, and what is allowed."""


def allowed(names) -> str:
    """Return *names* as the end of a message: "; known: a, b, c"."""
    return "; known: " + (", ".join(sorted(str(n) for n in names)) or "none")
