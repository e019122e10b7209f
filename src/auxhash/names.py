"""Names that users type, and what to say of one that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(argument: str, given: str, known: Iterable[str], otherwise: str = "") -> ValueError:
    """An error that lists the known names and suggests the nearest.

    `otherwise` is what else the argument may be, e.g. "a function of (d, y, b)".
    """
    names = {name.lower(): name for name in known}
    near = get_close_matches(str(given).lower().replace("_", "-"), names, 1)
    hint = f"; did you mean {names[near[0]]!r}?" if near else ""
    also = f" or {otherwise}" if otherwise else ""
    every = ", ".join(names.values())
    return ValueError(f"{argument} must be one of {every}{also}; got {given!r}{hint}")
