"""Where keys and characters stand in a TOML text."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.cli.diagnostics import Position
from slicewise.cli.toml_positions import find_positions
from tests.cli.jobfiles import BATCH, STREAM

TEXT = '''\
# a comment = "with [brackets]"
top = 1
[a.b]   # [c]
x = "one"
"quoted key" = 'two'
d.e = [ "p", # "q"
  "r", ["s"] ]
t = { u = "v", w.x = 3 }

[[many]]
n = 1
[[many]]
n = """
first \\
   second"""
m = "a\\tb\\u00e4c"
last = 2024-01-01 12:00:00
'''


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("top",), Position(2, 1)),
        (("a", "b"), Position(3, 1)),
        (("a", "b", "x"), Position(4, 1)),
        (("a", "b", "quoted key"), Position(5, 1)),
        (("a", "b", "d"), Position(6, 1)),
        (("a", "b", "d", "e"), Position(6, 3)),
        (("a", "b", "d", "e", 0), Position(6, 9)),
        (("a", "b", "d", "e", 1), Position(7, 3)),
        (("a", "b", "d", "e", 2, 0), Position(7, 9)),
        (("a", "b", "t", "u"), Position(8, 7)),
        (("a", "b", "t", "w", "x"), Position(8, 18)),
        (("many",), Position(10, 1)),
        (("many", 1), Position(12, 1)),
        (("many", 1, "n"), Position(13, 1)),
        (("many", 1, "last"), Position(17, 1)),
    ],
)
def test_keys_have_places(path, place):
    assert find_positions(TEXT).keys[path] == place


def test_characters_have_places_through_escapes_and_lines():
    chars = find_positions(TEXT).chars
    assert chars["a", "b", "x"] == (Position(4, 6), Position(4, 7), Position(4, 8), Position(4, 9))
    assert tomllib.loads(TEXT)["many"][1]["n"] == "first second"
    places = chars["many", 1, "n"]
    assert (places[0], places[6]) == (Position(14, 1), Position(15, 4))
    # a, tab, b, ä, c and the end
    assert [p.column for p in chars["many", 1, "m"]] == [6, 7, 9, 10, 16, 17]


def paths(value, path=()):
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


@pytest.mark.parametrize("text", [TEXT, STREAM, BATCH])
def test_every_key_that_tomllib_finds_has_a_place_where_it_stands(text):
    found, lines = find_positions(text), text.split("\n")
    for path, value in paths(tomllib.loads(text)):
        assert path in found.keys
        place = found.keys[path]
        if isinstance(path[-1], str) and not lines[place.line - 1].startswith("["):
            assert path[-1] in lines[place.line - 1][place.column - 1 :]
        if isinstance(value, str):
            assert len(found.chars[path]) == len(value) + 1


_KEYS = st.text("abc-_1", min_size=1, max_size=4)
_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8).filter(lambda t: "'" not in t)
_VALUES = st.one_of(
    st.integers(-5, 5).map(str), st.booleans().map(lambda b: str(b).lower()), _TEXTS.map(lambda t: f"'{t}'")
)


@given(
    st.dictionaries(_KEYS, st.dictionaries(_KEYS, _VALUES, max_size=4), max_size=4),
    st.sampled_from(["", "  ", "\n# x\n"]),
)
def test_random_files_are_scanned_to_the_end(tables, blank):
    text = "".join(
        f"{blank}[{t}]\n" + "".join(f"{blank}{k} = {v} # {k}\n" for k, v in keys.items()) for t, keys in tables.items()
    )
    found = find_positions(text)
    for path, value in paths(tomllib.loads(text)):
        place = found.keys[path]
        assert str(path[-1]) in text.split("\n")[place.line - 1]
        if isinstance(value, str):
            for place, char in zip(found.chars[path], value, strict=False):
                assert text.split("\n")[place.line - 1][place.column - 1] == char


@given(st.text(max_size=80))
def test_any_text_at_all_ends_the_scan_without_an_error(text):
    find_positions(text)
