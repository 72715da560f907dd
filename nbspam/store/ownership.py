"""Whose a file is, and what its mode is: for the errors that say who may not open it."""

import os
import stat


def user_name(number: int) -> str:
    """Return a user's name, or `number 1234` for one whom the system does not know."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"


def described_access(path: "str | os.PathLike[str]") -> str:
    """Return a clause on a file's owner and mode; empty if the system does not tell."""
    from pathlib import Path  # for errors only

    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return ""
    mode = stat.S_IMODE(status.st_mode)
    return f"it belongs to {user_name(status.st_uid)} and has the mode {mode:04o}"
