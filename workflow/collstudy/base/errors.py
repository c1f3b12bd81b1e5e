"""The exception for problems that the user can correct."""


class StudyError(Exception):
    """A problem with the input or the environment; the message states what is wrong, where, and what is allowed."""


def allowed(names) -> str:
    """Return *names*, sorted, as the end of an error message: "; known: a, b, c"."""
    return "; known: " + (", ".join(sorted(str(n) for n in names)) or "none")
