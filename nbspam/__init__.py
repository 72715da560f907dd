"""nbspam: a spam filter for the shell, and for Python programs.

    import nbspam

    spam_filter = nbspam.train("messages.tsv")
    spam_filter.classify("You have won a prize!").verdict

The names are loaded when they are first used, so importing nbspam costs next to nothing.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as type checkers know it; `typing` takes 9 ms to import

if TYPE_CHECKING:
    from nbspam.analysis import Matrix, classify_many, evaluate, matrix
    from nbspam.errors import (
        ModelError,
        NbspamError,
        OptionError,
        SourceError,
        TableError,
        TrainingError,
    )
    from nbspam.filter import Filter
    from nbspam.front_door import open_model as open  # noqa: A004
    from nbspam.front_door import train
    from nbspam.learning.update import Change
    from nbspam.scoring.explanation import Explanation, Word
    from nbspam.scoring.verdict import Verdict

__all__ = [
    "Change",
    "Explanation",
    "Filter",
    "Matrix",
    "ModelError",
    "NbspamError",
    "OptionError",
    "SourceError",
    "TableError",
    "TrainingError",
    "Verdict",
    "Word",
    "__version__",
    "classify_many",
    "evaluate",
    "matrix",
    "open",
    "train",
]

# Name -> (module, name there).
_LAZY = {
    "Change": ("nbspam.learning.update", "Change"),
    "Explanation": ("nbspam.scoring.explanation", "Explanation"),
    "Filter": ("nbspam.filter", "Filter"),
    "Matrix": ("nbspam.analysis", "Matrix"),
    "ModelError": ("nbspam.errors", "ModelError"),
    "NbspamError": ("nbspam.errors", "NbspamError"),
    "OptionError": ("nbspam.errors", "OptionError"),
    "SourceError": ("nbspam.errors", "SourceError"),
    "TableError": ("nbspam.errors", "TableError"),
    "TrainingError": ("nbspam.errors", "TrainingError"),
    "Verdict": ("nbspam.scoring.verdict", "Verdict"),
    "Word": ("nbspam.scoring.explanation", "Word"),
    "classify_many": ("nbspam.analysis", "classify_many"),
    "evaluate": ("nbspam.analysis", "evaluate"),
    "matrix": ("nbspam.analysis", "matrix"),
    "open": ("nbspam.front_door", "open_model"),
    "train": ("nbspam.front_door", "train"),
}


def __getattr__(name: str) -> object:
    """Load a public name (PEP 562)."""
    if name not in _LAZY:
        raise AttributeError(f"module 'nbspam' has no attribute {name!r}")
    from importlib import import_module

    module, own_name = _LAZY[name]
    value = globals()[name] = getattr(import_module(module), own_name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
