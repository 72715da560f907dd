"""Patterns that are compiled when they are first used.

Compiling a pattern takes 0.1 ms, or 1 ms with letters beyond Latin, and a message uses few
patterns.
"""

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """A pattern that becomes one of `re` when its first method is called."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern; its method is found here without a detour from then on."""
        value = self.__dict__[name] = getattr(re.compile(*self._arguments), name)
        return value


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Compile a pattern on first use; supports only the methods of a compiled pattern."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))
