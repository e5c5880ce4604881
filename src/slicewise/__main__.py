"""``python -m slicewise``: the command line."""

from slicewise.cli.app import main

if __name__ == "__main__":
    main()
