"""`python -m nbspam`: the program, as the script of that name runs it."""

from nbspam_main import main

if __name__ == "__main__":
    main()
