"""What holds for every test."""

import signal

# A shell starts background jobs, and so some CI runs, with SIGINT ignored, which every child
# inherits: the tests that interrupt the program would wait for an interrupt that never comes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
