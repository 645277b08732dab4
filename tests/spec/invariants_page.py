"""The pages of invariants, one for each family of systems, made of their files.

python -m tests.spec.invariants_page
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from brokerproof.spec.invariants import Binding, Invariant, invariants_of

PAGES: Mapping[str, str] = {"qpid": "docs/qpid-invariants.md"}

INTRODUCTION = """\
# Invariants of Qpid's queues, and what holds each

Clients are promised what the [requirements](planted-faults.md) say. Behind that stands what a
queue keeps inside: that no message lies behind a place, that one runner at most is at work. These
invariants are known by ids from notes on Qpid's releases; each is stated here in our own words,
with the document or the versions that it comes from, and is bound to what holds it:

* **model**: a statement that is proved for any number of messages and consumers, or, where it is
  about what happens in the end, explored in a scope ([proofs](proofs.md)). The variant named is
  refuted.
* **requirement**: what `brokerproof check` asks of every candidate that claims what it needs. The
  [planted fault](planted-faults.md) named breaks it.
* **interleavings**: the reference's own code under every order of accesses of small cases
  ([interleavings](interleavings.md)). The fault named is one that needs threads.
* **test**: a test of the reference, with its twin on a broken copy, or a comparison with something
  plain.

A test resolves every name below, so none of them can go stale. Made of `spec/invariants/qpid.toml`
by `python -m tests.spec.invariants_page`; on a terminal it is `brokerproof requirements
--invariants`, and `brokerproof requirements ENT-1` for one (of an id that is a
requirement as well, it tells that).
"""

SYSTEMS = {"qpid-push": "push", "qpid-priority": "priority", "qpid-pull": "pull"}


def page_of(family: str) -> str:
    """Return the page of a family."""
    found = [*invariants_of(family).values()]
    bare = [each for each in found if not each.held]
    partly = [each for each in found if each.held and each.uncovered]
    counts = (
        f"{len(found)} invariants: {len(found) - len(bare) - len(partly)} are held, {len(partly)} "
        f"in part, {len(bare)} by nothing.\n"
    )
    parts = [
        INTRODUCTION,
        counts,
        "## What is not held, and why\n",
        "| id | what is kept | what is missing |\n| --- | --- | --- |\n" + "".join(_gaps(found)),
        "## What holds each\n",
        "| id | of | what is kept | source | held by | what breaks that |\n"
        "| --- | --- | --- | --- | --- | --- |\n" + "".join(map(_row, found)),
    ]
    return "\n".join(parts)


def _gaps(found: list[Invariant]) -> Iterator[str]:
    for each in sorted(found, key=lambda one: bool(one.held)):
        if each.uncovered:
            part = "in part: " if each.held else ""
            yield f"| {each.id} | {each.statement} | {part}{each.uncovered} |\n"


def _row(each: Invariant) -> str:
    of = ", ".join(SYSTEMS[name] for name in each.systems)
    sources = "; ".join(map(str, each.sources))
    held = "<br>".join(map(_held, each.held)) or "nothing"
    broken = "<br>".join(_broken(binding) for binding in each.held)
    return f"| {each.id} | {of} | {each.statement} | {sources} | {held} | {broken} |\n"


def _held(binding: Binding) -> str:
    kind, _, name = str(binding).partition(" ")
    if kind == "interleavings":
        return str(binding)
    if kind == "test":
        return f"{kind} `{name.rpartition(':')[2]}`"
    return f"{kind} `{name}`"


def _broken(binding: Binding) -> str:
    name = binding.broken_by.rpartition(":")[2]
    return f"`{name}`" if name else "it is compared with something plain"


def main() -> None:
    """Write the pages."""
    for family, path in PAGES.items():
        Path(path).write_text(page_of(family), encoding="utf-8")


if __name__ == "__main__":
    main()
