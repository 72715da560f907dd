"""What holds for every test."""

import os
import signal

from hypothesis import settings

# No config file of whoever runs the tests, in the programs that they start either.
os.environ["NBSPAM_CONFIG"] = ""

# A shell starts background jobs, and so some CI runs, with SIGINT ignored, which every child
# inherits: the tests that interrupt the program would wait for an interrupt that never comes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same cases in every run, so that a change is refused for what it changed and not for what
# chance found.  `pytest --hypothesis-profile=new-cases` looks for others, and for more.  There is
# no deadline: it is the wall clock's, and on a busy machine 200 ms pass while nothing runs.
settings.register_profile("same-cases", max_examples=50, derandomize=True, deadline=None)
settings.register_profile("new-cases", max_examples=1000, deadline=None)
settings.load_profile("same-cases")
