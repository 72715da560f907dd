"""What holds for every test."""

import gc
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Of all that is imported little is ever garbage: a twentieth of the time goes to looking for it.
gc.set_threshold(50_000, 20, 50)

# Bytecode is kept, also where the environment says no.  Without it each process of the tests takes
# 8 s to compile all of them, and each program that they start compiles nbspam.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

TESTS = Path(__file__).parent
# These files take longest and begin first; the last of them would keep one core waiting.
SLOW = """
    cli/test_sessions.py reading/test_partitions.py recipes/test_dovecot.py cli/test_pages.py
    learning/test_training.py serving/test_prefork.py test_python.py test_notebook.py
    cluster/test_cluster_failures.py test_asgi_stress.py learning/test_in_memory.py
    cli/test_train.py test_front_door.py test_filter.py serving/test_tell.py cli/test_serve.py
""".split()

# No config file of whoever runs the tests, in the programs that they start either.
os.environ["NBSPAM_CONFIG"] = ""

# A shell starts background jobs, and so some CI runs, with SIGINT ignored, and `nohup` with SIGHUP,
# which every child inherits: the tests that stop the program would wait for what never comes.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# The same cases in every run, so that a change is refused for what it changed and not for what
# chance found; more of them for the long tests, and others with `--hypothesis-profile=new-cases`.
# No deadline and no complaint of slowness: both are the wall clock's, and on a busy machine a
# second passes while nothing runs.
settings.register_profile(
    "some-cases",
    max_examples=12,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
some = settings.get_profile("some-cases")
settings.register_profile("more-cases", some, max_examples=80)
settings.register_profile("new-cases", some, max_examples=1000, derandomize=False)
settings.load_profile("some-cases")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave to the long run all but some cases of each test that is marked `few`."""
    _forget_local_constants()
    tests = {}
    for item in items:
        if item.get_closest_marker("few"):
            tests.setdefault((item.parent, item.originalname), []).append(item)
    for cases in tests.values():
        [n] = cases[0].get_closest_marker("few").args
        shown, rest = set(), list(cases)
        for _ in range(min(n, len(cases))):  # the next case has most values that none before had
            values = [set(case.callspec.indices.items()) for case in rest]
            next_one = max(range(len(rest)), key=lambda i: len(values[i] - shown))
            shown |= values[next_one]
            del rest[next_one]
        for case in rest:
            case.add_marker("long")
    ranks = {name: rank for rank, name in enumerate(SLOW)}
    items.sort(key=lambda item: ranks.get(str(item.path.relative_to(TESTS)), len(SLOW)))
    for item in items:
        if item.get_closest_marker("long") or item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.timeout(1200))


def _forget_local_constants():
    """Keep from Hypothesis the constants of our modules where its cases are to be the same.

    It draws some values from those of the local modules that are imported: the tests before in this
    process choose them, as do `pytest` or a worker as the main module, the place of the package
    and each change of it.  Importing all of nbspam before left 9 of 33 properties with other cases
    under xdist than without.  Nothing public turns it off.
    """
    if settings().derandomize:
        with suppress(ImportError):  # Hypothesis before 6.131, which has none
            providers = import_module("hypothesis.internal.conjecture.providers")
            providers._get_local_constants = providers.Constants


def pytest_xdist_auto_num_workers(config):
    """Run two tests on each core: many wait for a clock or another process."""
    given = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    return int(given) if given else 2 * (os.cpu_count() or 1)


def pytest_xdist_make_scheduler(config, log):
    """Give all tests of a file to one process, which makes its models and loads libraries once.

    bayes, evaluation, learning and scoring took 81 s of processor time so, and 94 s test by test.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # by their numbers of tests
    return LoadFileScheduling(config, log)
