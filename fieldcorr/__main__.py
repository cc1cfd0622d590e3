"""``python -m fieldcorr``: the command line."""

from fieldcorr.cli import main

if __name__ == "__main__":
    main()
