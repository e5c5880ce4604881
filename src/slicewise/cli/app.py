"""App: the entry point of the command line, which says what to install where Typer is not."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that the command line names."""
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
