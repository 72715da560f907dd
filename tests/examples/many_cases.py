"""Many values without a case of the default run for each."""

import functools
import inspect


def names_of(names):
    return names.replace(",", " ").split() if isinstance(names, str) else list(names)


def in_turn(names, values):
    """Run a test with one value after the other, as parametrize does, but as one case.

    For what takes a moment and leaves the next one what it found: a test's own fixtures are made
    once.  A failure names the values that it was with.
    """
    keys, values = names_of(names), list(values)

    def decorate(test):
        @functools.wraps(test)
        def all_in_turn(**fixtures):
            for value in values:
                given = dict(zip(keys, value if len(keys) > 1 else (value,), strict=True))
                try:
                    test(**fixtures, **given)
                except BaseException as error:
                    error.add_note(f"with {given}")
                    raise

        signature = inspect.signature(test)
        kept = [p for name, p in signature.parameters.items() if name not in keys]
        all_in_turn.__signature__ = signature.replace(parameters=kept)
        return all_in_turn

    return decorate
