"""The documentation holds the fact cards of the registry, word for word."""

from __future__ import annotations

from pathlib import Path

from slicewise.swag import ALGORITHMS, fact_cards

PAGE = Path(__file__).parents[2] / "docs" / "algorithms.md"


def test_page_holds_exactly_the_table_of_the_registry():
    """If this fails: paste what `python -c "from slicewise.swag import fact_cards; print(fact_cards())"` prints."""
    page = PAGE.read_text(encoding="utf-8")
    table = page.split("## Fact cards\n")[1].split("\n\n", 1)[1].split("\n\n")[0]
    assert table.strip() == fact_cards()


def test_there_is_a_row_for_every_algorithm():
    rows = fact_cards().splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(ALGORITHMS)
    assert all(row.count("|") == 8 for row in rows)
