"""Write the API page from docstrings: ``python docs/make_api.py`` writes ``docs/api.md``; a test keeps it current."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import slicewise as sw
from slicewise import baselines, plot, spark, swag, testing
from slicewise.slicing import LateRow, Operator, Stats
from slicewise.sources import kafka

PAGE = Path(__file__).parent / "api.md"
INTRODUCTION = """\
# API

Every public name: how it is called, what it is, what it takes. Written by `docs/make_api.py` from the docstrings; each
of them also has examples that run, which `help(sw.tumbling)` shows. `sw` is `import slicewise as sw`.
"""


class Group(NamedTuple):
    """Names that stand together, each with what it is."""

    title: str
    prefix: str
    members: dict[str, Any]
    text: str = ""


def groups() -> list[Group]:
    """All public names, each in one group."""
    names = {name: getattr(sw, name) for name in sw.__all__}
    aggregates = set(sw.aggregates.__all__)
    errors = [name for name, member in names.items() if isinstance(member, type) and issubclass(member, Exception)]
    windows = ["Evict", *(name for name in sw.windows.__all__ if name.islower() and name in names)]
    grouped = {
        "workload": ["Workload", "Query", "processing_time"],
        "windows": sorted(windows, key=_alphabet),
        "amounts": ["rows", "units"],
        "columns": ["expr"],
        "aggregates": sorted(aggregates, key=_alphabet),
        "results": ["Result", "Results"],
        "errors": sorted(errors),
        "spark": ["latest", "only", "upsert", "inspect"],
    }
    rest = set(names) - {name for some in grouped.values() for name in some} - {"spark", "swag", "testing"}
    assert not rest, f"give these names a group: {sorted(rest)}"
    of = {title: {name: names[name] for name in some} for title, some in grouped.items()}
    on_spark = {f"spark.{name}": member for name, member in _members(spark).items() if name not in of["spark"]}
    return [
        Group("Workload", "sw.", of["workload"]),
        Group(
            "Operator",
            "",
            {"Operator": Operator, "LateRow": LateRow, "Stats": Stats},
            "What `Workload.operator` gives, and what it gives in turn.",
        ),
        Group("Windows", "sw.", of["windows"]),
        Group("Lengths", "sw.", of["amounts"], "Beside durations such as `'10 minutes'` and plain integers."),
        Group("Computed columns", "sw.", of["columns"], "See [expressions.md](expressions.md)."),
        Group("Aggregates", "sw.", of["aggregates"]),
        Group("Results", "sw.", of["results"]),
        Group("On Spark", "sw.", {**of["spark"], **on_spark}, "`Workload.run` is the way there."),
        Group(
            "Kafka",
            "kafka.",
            {"register": kafka.register, "KafkaSource": kafka.KafkaSource},
            "After `from slicewise.sources import kafka`; needs confluent-kafka. See [sources.md](sources.md).",
        ),
        Group("Errors", "sw.", of["errors"]),
        Group("Testing", "sw.testing.", _members(testing)),
        Group(
            "Aggregators",
            "sw.swag.",
            {**_members(swag), "stores.Store": swag.stores.Store},
            "The papers' algorithms; see [algorithms.md](algorithms.md).",
        ),
        Group(
            "Baselines",
            "baselines.",
            _members(baselines),
            "After `from slicewise import baselines`: the techniques that the papers compare slicing with.",
        ),
        Group("Plot", "sw.plot.", _members(plot), "After `import slicewise.plot`; needs matplotlib."),
    ]


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for group in groups():
        parts.append(f"## {group.title}\n")
        parts += [group.text + "\n"] if group.text else []
        for name, member in group.members.items():
            parts += _described(group.prefix + name, member, "###")
            for method_name, method in _methods(member):
                parts += _described(f"{name.rpartition('.')[2]}.{method_name}", method, "####")
    return "\n".join(parts)


def _alphabet(name: str) -> tuple[str, str]:
    return name.lower(), name


def _members(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in sorted(module.__all__, key=_alphabet)}


def _methods(member: Any) -> Iterator[tuple[str, Any]]:
    """The methods that a class adds and documents, in the order of its code."""
    if isinstance(member, type) and not issubclass(member, BaseException):
        for name in vars(member):
            method = inspect.getattr_static(member, name)
            if not name.startswith("_") and inspect.isfunction(method) and "Examples" in sections_of(method):
                yield name, method


def _described(name: str, member: Any, heading: str) -> list[str]:
    lines = [f"{heading} {name}\n"]
    if isinstance(member, dict):
        known = ", ".join(f"`{key}`" for key in member)
        return [*lines, textwrap.fill(f"A dictionary, every one by its name: {known}.", 118) + "\n"]
    sections = sections_of(member)
    if callable(member) and member is not Operator:  # Workload.operator makes it
        lines.append(textwrap.indent(_call(name, member), "    ") + "\n")
    lines.append(_markdown(sections[""]) + "\n")
    for title in ("Parameters", "Attributes", "Returns", "Yields", "Raises"):
        if title in sections:
            lines.append(f"*{title}*\n")
            lines.append(_listed(sections[title]) + "\n")
    if "Notes" in sections:
        lines.append(_markdown(sections["Notes"]) + "\n")
    return lines


def _call(name: str, member: Any) -> str:
    """How it is called, without types: these stand beside the parameters."""
    try:
        parameters = [p for p in inspect.signature(member).parameters.values() if p.name != "self"]
    except ValueError:
        return name
    kinds = [p.kind for p in parameters]
    listed = [_parameter(p) for p in parameters]
    # From the end, so that positions stay right.
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        listed.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        listed.insert(kinds.count(inspect.Parameter.POSITIONAL_ONLY), "/")
    text = f"{name}({', '.join(listed)})"
    if len(text) <= 110:
        return text
    wrapped = textwrap.wrap(", ".join(listed), 106, break_long_words=False)
    return "\n".join([f"{name}(", *(f"    {line}" for line in wrapped), ")"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    # An object stands for a value that must be given, so that its absence has an error of its own.
    optional = parameter.default is not inspect.Parameter.empty and type(parameter.default) is not object
    # What is made anew for each instance has no text of its own.
    shown = "..." if repr(parameter.default) == "<factory>" else repr(parameter.default)
    return f"{stars}{parameter.name}" + (f"={shown}" if optional else "")


def sections_of(member: Any) -> dict[str, str]:
    """The numpydoc sections of a docstring by title; the summary and what follows it stand under ``""``."""
    text = inspect.cleandoc(member.__doc__ or "") if hasattr(member, "__doc__") else ""
    parts = re.split(r"^(\w+(?: \w+)*)\n-{3,}\n", text, flags=re.MULTILINE)
    return {"": parts[0].strip(), **{title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}}


def _listed(section: str) -> str:
    """Entries of a section, as a list."""
    entries: list[tuple[str, list[str]]] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            entries.append((line, []))
        elif entries:
            entries[-1][1].append(line.strip())
    lines = []
    for head, text in entries:
        names, _, type_ = head.partition(" : ")
        shown = f"`{names}`" + (f" ({_markdown(type_)})" if type_ else "")
        lines.append(textwrap.fill(f"- {shown}: {_markdown(' '.join(text))}".rstrip(": "), 118, subsequent_indent="  "))
    return "\n".join(lines)


def _markdown(text: str) -> str:
    """Marks of reStructuredText as those of Markdown."""
    text = re.sub(r":\w+:`~?([^`]*)`", lambda m: f"`{m[1].removeprefix('slicewise.')}`", text)
    return text.replace("::\n", ":\n").replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
