"""`python -m nbspam`, and the script of that name."""

import sys


def main() -> None:
    """Run the program; what it cannot even be loaded for is one sentence as well."""
    try:
        from nbspam.cli import main as run
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (click is missing, a file damaged)
        from nbspam.serving.passage import bug_or_missing, fail

        sys.exit(fail(sys.argv[1:], [], 1, bug_or_missing(error)))
    run()


if __name__ == "__main__":
    main()
