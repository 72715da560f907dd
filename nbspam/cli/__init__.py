"""The command line.  Only this package knows click and the names of options.

click loads modules for a function or a type each: inspect, which loads ast, dis and tokenize, for
`cleandoc`; uuid, which loads platform, and datetime for kinds of options that we do not have;
gettext, which loads locale and looks for translations at each text, and there are none.  While
click is loaded, stand-ins take their places.  For one mail that takes 56 ms in place of 64.
"""

import _thread
import sys
from types import ModuleType
from typing import Any


def cleandoc(text: str) -> str:
    """Return a text without the margin of all lines but the first; as inspect's."""
    first, *rest = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in rest)]).strip("\n")


class _StandIn(ModuleType):
    """Has what click uses of a module; anything else is that of the module, which is loaded."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # as import asks
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(__import__(self.__name__), name)


def _load_click() -> None:
    """Load click with the stand-ins of what is not loaded; later imports get the modules."""
    uses: dict[str, dict[str, object]] = {
        "inspect": {"cleandoc": cleandoc},
        "uuid": {"UUID": type("UUID", (), {})},
        "datetime": {"datetime": type("datetime", (), {})},
        "threading": {"local": _thread._local},
        "gettext": {"gettext": str, "ngettext": lambda one, more, n: one if n == 1 else more},
    }
    stand_ins = {name: _StandIn(name) for name in uses.keys() - sys.modules.keys()}
    for name, module in stand_ins.items():
        vars(module).update(uses[name])
    sys.modules.update(stand_ins)
    import click  # noqa: F401

    for name in stand_ins.keys() & sys.modules.keys():
        if sys.modules[name] is stand_ins[name]:
            del sys.modules[name]


_load_click()
