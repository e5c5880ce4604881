"""The documentation holds the fact cards of the registry, word for word."""

from __future__ import annotations

from pathlib import Path

from slicewise.baselines import BASELINES, fact_cards

PAGE = Path(__file__).parents[2] / "docs" / "algorithms.md"


def test_page_holds_exactly_the_table_of_the_registry():
    """If this fails: paste what `python -c "from slicewise.baselines import *; print(fact_cards())"` prints."""
    assert fact_cards() in PAGE.read_text(encoding="utf-8")


def test_there_is_a_row_for_every_technique():
    rows = fact_cards().splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(BASELINES)
    assert all(row.count("|") == 7 for row in rows)
