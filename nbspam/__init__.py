"""nbspam: a spam filter for the shell, and for Python programs.

    import nbspam

    spam_filter = nbspam.train("messages.tsv")
    spam_filter.classify("You have won a prize!").verdict

The names are loaded when they are first used, so importing nbspam costs next to nothing.
"""

__version__ = "1.0.0"

TYPE_CHECKING = False  # as type checkers know it; `typing` takes 9 ms to import

if TYPE_CHECKING:
    from nbspam.analysis import Matrix as Matrix
    from nbspam.analysis import classify_many as classify_many
    from nbspam.analysis import evaluate as evaluate
    from nbspam.analysis import matrix as matrix
    from nbspam.errors import ModelError as ModelError
    from nbspam.errors import NbspamError as NbspamError
    from nbspam.errors import OptionError as OptionError
    from nbspam.errors import SourceError as SourceError
    from nbspam.errors import TableError as TableError
    from nbspam.errors import TrainingError as TrainingError
    from nbspam.filter import Filter as Filter
    from nbspam.learning.update import Change as Change
    from nbspam.library import open as open  # noqa: A004
    from nbspam.library import train as train
    from nbspam.scoring.explanation import Explanation as Explanation
    from nbspam.scoring.explanation import Word as Word
    from nbspam.scoring.verdict import Verdict as Verdict

_PUBLIC = {
    "analysis": "Matrix classify_many evaluate matrix",
    "errors": "ModelError NbspamError OptionError SourceError TableError TrainingError",
    "filter": "Filter",
    "library": "open train",
    "learning.update": "Change",
    "scoring.explanation": "Explanation Word",
    "scoring.verdict": "Verdict",
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
__all__ = sorted([*_MODULES, "__version__"])


# Windows has no fcntl, which keeps two writers of a model apart.
UNIX_ONLY = "nbspam needs Linux, macOS or another Unix; on Windows run it in WSL"


def __getattr__(name: str) -> object:
    """Load a public name (PEP 562); raises ImportError on Windows."""
    if name not in _MODULES:
        raise AttributeError(f"module 'nbspam' has no attribute {name!r}")
    import os
    from importlib import import_module

    if os.name == "nt":
        raise ImportError(UNIX_ONLY)
    value = globals()[name] = getattr(import_module(f"nbspam.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
