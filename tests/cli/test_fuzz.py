"""Broken job files: whatever is done to a file, it is a job or there are mistakes in it, and never a traceback."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from slicewise.cli.commands import app
from tests.cli.jobfiles import BATCH, STREAM

EVERYTHING = """\
name = "x"
[source]
table = "t"
select = ["a AS b", 'c']
where = \"\"\"
v > 0\"\"\"
[source.options]
kafka.bootstrap.servers = "$HOME"
"a.b" = 1.5
[workload]
time = "ts"
watermark = 3
[queries]
a = { window = "frames('x < 3', min_rows=2)", n = "count(*)", p = "percentile(v, [0.1, 0.9])" }
"b c" = { window = "sliding(rows(9), every=3)", m = "max_by('my col', v)" }
[sink]
table = "u"
partition_by = ["query"]
[spark]
packages = ["g:a:1"]
conf = { x = true }
"""
_CHUNKS = st.one_of(
    st.sampled_from(
        list("[]{}()'\"=.,#$\\\n\r\t -*") + ["'''", '"""', "${", "[[", "]]", "= {", "true", "1e9", "\ufeff", "\x00"]
    ),
    st.sampled_from(
        ["2024-01-01", "[sink]", "queries.", "window = ", "sum(", "rows(", "$HOME", "inf", "nan", "0x", "é", "🙂"]
    ),
    st.text(max_size=6),
)


@st.composite
def broken(draw):
    text = draw(st.sampled_from([STREAM, BATCH, EVERYTHING]))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(text)))
        how = draw(st.sampled_from(["insert", "delete", "replace", "swap lines", "repeat line", "drop line", "value"]))
        lines = text.split("\n")
        line = text.count("\n", 0, at)
        if how == "insert":
            text = text[:at] + draw(_CHUNKS) + text[at:]
        elif how == "delete":
            text = text[:at] + text[at + draw(st.integers(1, 12)) :]
        elif how == "replace":
            text = text[:at] + draw(_CHUNKS) + text[at + draw(st.integers(1, 8)) :]
        elif how == "value" and " = " in lines[line]:
            values = st.sampled_from(
                ["3", "true", "[]", "{}", '""', "'x'", "[[1]]", "1979-05-27", "{ a = { b = 1 } }", "-1.5"]
            )
            lines[line] = lines[line].split(" = ")[0] + " = " + draw(values)
            text = "\n".join(lines)
        else:
            other = draw(st.integers(0, len(lines) - 1))
            if how == "swap lines":
                lines[line], lines[other] = lines[other], lines[line]
            elif how == "repeat line":
                lines.insert(other, lines[line])
            else:
                del lines[line]
            text = "\n".join(lines)
    return text


def check(data: bytes, *arguments: str) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "job.toml")
        file.write_bytes(data)
        done = CliRunner().invoke(app, ["check", str(file), *arguments], env={"COLUMNS": "200"})
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output.replace(str(file), "job.toml")


def test_the_files_are_right_before_they_are_broken():
    for text in (STREAM, BATCH, EVERYTHING):
        code, said = check(text.encode())
        assert code == 0, said


@pytest.mark.slow
@settings(max_examples=min(settings().max_examples * 10, 500))
@given(broken())
def test_a_broken_file_is_a_job_or_has_mistakes(text):
    code, said = check(text.encode("utf-8", "surrogatepass"))
    assert code in (0, 2)
    assert "Traceback" not in said
    assert said.startswith("job.toml")
    assert ("is fine: " in said) == (code == 0)


@given(st.binary(max_size=200))
def test_any_bytes_at_all_have_mistakes(data):
    code, said = check(data)
    assert code == 2
    assert said.startswith("job.toml")


_PATHS = st.lists(
    st.sampled_from(["source", "sink", "queries", "workload", "path", "q", "window", "options", "a b", '"'])
).map(".".join)


@given(
    st.lists(
        st.tuples(_PATHS, st.sampled_from(["=", "==", ""]), st.one_of(_CHUNKS, st.sampled_from(["3", "[1]", "{a=1}"])))
    )
)
def test_any_overrides_are_taken_or_have_mistakes(said):
    arguments = [x for path, equals, value in said for x in ("--set", f"{path}{equals}{value}")]
    code, output = check(BATCH.encode(), *arguments)
    assert code in (0, 2)
    assert "Traceback" not in output
