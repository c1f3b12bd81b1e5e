"""The one exception for everything that the user can mend."""


class StudyError(Exception):
    """A problem with the input or the environment; its text says what is wrong, where, and what is allowed."""


def allowed(names) -> str:
    """Return *names* as the end of a message: "; known: a, b, c"."""
    return "; known: " + (", ".join(sorted(str(n) for n in names)) or "none")
