"""App: the entry point of the command line; names the extra to install where Typer is missing."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command given on the command line."""
    try:
        from slicewise.cli.commands import app
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] not in ("typer", "rich"):
            raise
        print(f"the command line needs {e.name}: pip install 'slicewise[cli]'", file=sys.stderr)
        sys.exit(1)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
