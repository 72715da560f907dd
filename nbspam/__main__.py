"""`python -m nbspam`."""

from nbspam.cli import main

if __name__ == "__main__":
    main()
