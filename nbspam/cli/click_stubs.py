"""Import click without the modules that classifying a message does not need.

`inspect` dedents help, `uuid` and `datetime` are types of options, `gettext` translates.  They
took 13 % of the instructions of `nbspam classify < mail`, so stubs replace them while click is
imported.  A stub imports its module when another attribute is accessed.

Only the program nbspam imports click with stubs: in another program that imports nbspam.cli, click
has its own types.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Stub(ModuleType):
    """A module with some stub attributes; all other attributes come from the real module."""

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system looks for such attributes
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def _cleandoc(text: str) -> str:
    return str(import_module("inspect").cleandoc(text)) if "\n" in text else text.lstrip()


def _ngettext(singular: str, plural: str, n: int) -> str:
    return singular if n == 1 else plural


_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "datetime": {"datetime": object},
    "gettext": {"gettext": str, "ngettext": _ngettext},
    "inspect": {"cleandoc": _cleandoc},
    "uuid": {"UUID": object},
}


def import_click() -> None:
    """Import click; afterwards the stubs are gone."""
    stubs = [_Stub(*item) for item in _ATTRIBUTES.items() if item[0] not in sys.modules]
    sys.modules.update({module.__name__: module for module in stubs})
    try:
        import_module("click")
    finally:
        for module in stubs:
            if sys.modules.get(module.__name__) is module:
                del sys.modules[module.__name__]
