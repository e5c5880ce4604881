"""Outbox: what a call has to hand out. Errors go first; results wait for the next call, and none is lost."""

from __future__ import annotations

from slicewise.errors import SlicewiseError
from slicewise.results import Results

__all__ = ["Outbox"]

NOTHING = Results()


class Outbox:
    """Results and errors of an operator that nobody has seen yet."""

    def __init__(self) -> None:
        self.results = NOTHING
        self.errors: list[SlicewiseError] = []

    def add(self, results: Results) -> None:
        """Results, to be handed out once there is no error."""
        self.results = results if self.results is NOTHING else self.results + results

    def refuse(self, error: SlicewiseError | None) -> None:
        """An error that was dealt with, and of which the user must know; None if there is none."""
        if error is not None:
            self.errors.append(error)

    def released(self) -> Results:
        """All results, unless there is an error."""
        if self.errors:
            self.raise_errors()
        results, self.results = self.results, NOTHING
        return results

    def raise_errors(self) -> None:
        """Raise the first error, with the others as its notes."""
        errors, self.errors = self.errors, []
        for other in errors[1:]:
            errors[0].add_note(str(other))
        if errors:
            raise errors[0]
