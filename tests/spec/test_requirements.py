"""The catalogue is well formed, and what it cites exists.

The outlines of the cited documents are in `docs/reference/documents.md`. Where the environment
variable `BROKERPROOF_DOCUMENTS` names a folder with the original texts, each title and heading of
those outlines is looked for in them too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from brokerproof.spec.catalogues import CatalogueError
from brokerproof.spec.invariants import Invariant, invariants, read_invariants
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.differences import Difference, differences
from brokerproof.spec.requirements import (
    ADDRESSES,
    OFFERED,
    Level,
    Requirement,
    Source,
    catalogue,
    read_catalogue,
)

DOCUMENTS = "BROKERPROOF_DOCUMENTS"
PROTOCOL = "Driver protocol 1"
OWN = {
    PROTOCOL: "reference/protocol.md",
    "Every interleaving of real code": "explanation/interleavings.md",
}
"""The documents that are pages of this project, and where each is."""

RELEASES = {"Qpid Java broker, releases", "RabbitMQ, releases", "ActiveMQ, releases"}
"""What is cited by versions: no document, but a broker's public history."""

DOCS = Path(__file__).parents[2] / "docs"

ONE = """
[[requirement]]
id = "nothing-lost"
level = "MUST"
statement = "It stays."
situation = "It is there."
sources = [{ document = "Priority Queues", section = "Priority Queues" }]
"""

Outlines = Mapping[str, frozenset[str]]
"""The sections of each document, by its title."""


# The catalogue.


def test_the_catalogue_loads_and_has_the_core_profile() -> None:
    assert len(catalogue()) >= 20
    core = {requirement.id for requirement in catalogue().values() if requirement.core}
    assert {"nothing-lost", "nothing-twice", "nothing-invented"} <= core
    assert all(
        requirement.level is Level.MUST for requirement in catalogue().values() if requirement.core
    )
    assert all(not requirement.needs for requirement in catalogue().values() if requirement.core)


def test_each_requirement_is_found_under_its_own_id() -> None:
    assert [requirement.id for requirement in catalogue().values()] == list(catalogue())
    promises = [each for each in catalogue() if each not in invariants()]
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", each) for each in promises)


def test_statements_and_situations_are_sentences() -> None:
    for requirement in catalogue().values():
        for text in (requirement.statement, requirement.situation):
            assert text[0].isupper(), requirement.id
            assert text.endswith("."), requirement.id


UNNAMED = re.compile(
    r"\b(?:who|whom|whoever|whatever|nobody|somebody|anybody|everybody)\b|\bwhat (?:is|was)\b",
    re.IGNORECASE,
)
"""Subjects that leave the reader to guess which thing is meant."""


def vague(found: Iterable[Requirement]) -> list[str]:
    """Return the requirements whose texts do not name what they are about."""
    return [each.id for each in found if UNNAMED.search(f"{each.statement} {each.situation}")]


def test_every_sentence_names_what_it_is_about() -> None:
    assert vague(catalogue().values()) == []


@pytest.mark.parametrize(
    "words", ["Nobody loses it.", "What is there stays.", "Who waits gets it."]
)
def test_a_sentence_that_names_nothing_is_found(words: str) -> None:
    assert vague(read_catalogue("one.toml", ONE.replace("It stays.", words))) == ["nothing-lost"]


def test_a_catalogue_file_is_read() -> None:
    [one] = read_catalogue("one.toml", ONE)
    assert (one.id, one.level, one.needs, one.core) == ("nothing-lost", Level.MUST, (), False)
    assert str(one.sources[0]) == "Priority Queues, Priority Queues"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[[requirement]]", "[[requirement", "one.toml: Expected ']]'"),
        (
            'level = "MUST"',
            'level = "MAY"',
            "one.toml: Invalid enum value 'MAY' - at `$.requirement[0].level`",
        ),
        ('level = "MUST"', "level = 1", "`$.requirement[0].level`"),
        (
            'statement = "It stays."',
            "",
            "missing required field `statement` - at `$.requirement[0]`",
        ),
        ('situation = "It is there."', 'when = "now"', "`$.requirement[0]`"),
        (
            "situation",
            'colour = "red"\nsituation',
            "unknown field `colour` - at `$.requirement[0]`",
        ),
        ("section =", "chapter =", "`$.requirement[0].sources[0]`"),
        (
            'sources = [{ document = "Priority Queues", section = "Priority Queues" }]',
            "",
            "field `sources`",
        ),
        (
            'sources = [{ document = "Priority Queues", section = "Priority Queues" }]',
            "sources = []",
            "one.toml: nothing-lost has no source",
        ),
        (
            'section = "Priority Queues"',
            'section = "Priority Queues", versions = "0.8"',
            "one.toml: nothing-lost: a source names a section, or versions",
        ),
        ("[[requirement]]", "[[promise]]", "unknown field `promise`"),
    ],
)
def test_a_malformed_catalogue_is_refused_with_file_and_field(
    old: str, new: str, complaint: str
) -> None:
    assert old in ONE
    with pytest.raises(CatalogueError) as raised:
        read_catalogue("one.toml", ONE.replace(old, new))
    assert complaint in str(raised.value)
    assert str(raised.value).startswith("one.toml: ")


def test_a_file_without_a_requirement_and_an_invariant_is_refused() -> None:
    with pytest.raises(CatalogueError, match=r"^one\.toml: no requirement and no invariant$"):
        read_catalogue("one.toml", "# nothing\n")


def folder_of(texts: Mapping[str, str], root: Path) -> Path:
    """Write catalogue files and return their folder."""
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def catalogue_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let the catalogue be read from another folder, which is returned."""
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    monkeypatch.setattr("brokerproof.spec.requirements.OF_SYSTEMS", ())
    catalogue.cache_clear()
    yield tmp_path
    catalogue.cache_clear()


INSIDE = """
[[invariant]]
id = "{0}"
systems = ["qpid-pull"]
statement = "All is well."
sources = [{{ document = "Priority Queues", section = "Priority Queues" }}]
uncovered = "It is an example."
"""
GATE = """[invariant.gate]
situation = "Something is there."
needs = ["places"]
broken_by = "a-fault"
"""


def test_an_invariant_with_a_gate_is_a_requirement_with_the_same_sentence() -> None:
    part = GATE + 'statement = "A part is well."\n'
    text = INSIDE.format("A") + INSIDE.format("B") + GATE + INSIDE.format("C") + part
    found = {each.id: each for each in read_catalogue("x.toml", text)}
    assert {name: each.statement for name, each in found.items()} == {
        "B": "All is well.",
        "C": "A part is well.",
    }
    assert found["B"].needs == ("inspect", "places")
    asked = [each.held for each in read_invariants("x.toml", text)]
    assert [[str(binding) for binding in each] for each in asked] == [
        [],
        ["requirement B"],
        ["requirement C"],
    ]


def test_a_gate_has_its_own_sentence_only_for_a_part_of_the_invariant() -> None:
    gates = {each.id: each.gate for each in invariants().values() if each.gate}
    assert [
        name for name, gate in gates.items() if gate.statement == invariants()[name].statement
    ] == []
    assert {name for name, gate in gates.items() if gate.statement} == {
        "CR-1",
        "EL-4",
        "PTR-1",
        "QCM-4",
        "RUN-5",
    }


def test_files_are_read_in_the_order_of_their_names(catalogue_of: Path) -> None:
    other = ONE.replace("nothing-lost", "nothing-twice")
    folder_of({"b.toml": ONE, "a.toml": other, "notes.txt": "no catalogue"}, catalogue_of)
    assert list(catalogue()) == ["nothing-twice", "nothing-lost"]


@pytest.mark.parametrize("texts", [{"a.toml": ONE, "b.toml": ONE}, {"b.toml": ONE + ONE}])
def test_an_id_that_is_stated_twice_is_refused(catalogue_of: Path, texts: dict[str, str]) -> None:
    folder_of(texts, catalogue_of)
    with pytest.raises(CatalogueError, match=r"b\.toml: nothing-lost is stated twice"):
        catalogue()


# Needs: claims that exist.


def unknown_needs(found: Iterable[Requirement]) -> list[str]:
    """Return the needs that no candidate could ever claim."""
    unknown = []
    for requirement in found:
        for need in requirement.needs:
            for alternative in need.split("|"):
                name, _, value = alternative.partition(":")
                if alternative in OFFERED:
                    continue
                if not value:
                    claim: object = {name: True}
                else:
                    claim = {name: [value] if name in LISTS else value}
                if name in ("browse", "modes") and "browse" in (name, value):
                    claim = {"browse": True, "modes": ["browse"]}
                try:
                    msgspec.convert(claim, _Claims)
                except msgspec.ValidationError as error:
                    unknown.append(f"{requirement.id}: {alternative}: {error}")
    return unknown


LISTS = ("orders", "modes", "credit", "dead_letters", "length_limit")
"""Claims that are lists of names."""


class _Claims(Capabilities, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Claims, without any others."""


def test_every_need_is_a_claim_that_a_candidate_can_make() -> None:
    assert unknown_needs(catalogue().values()) == []


@pytest.mark.parametrize("need", ["gets", "get:yes", "modes:sometimes", "get|browses"])
def test_a_need_that_no_broker_can_claim_is_found(need: str) -> None:
    [one] = read_catalogue("one.toml", f'{ONE}needs = ["{need}"]\n')
    assert len(unknown_needs([one])) == 1


# Sources: documents and sections that exist.


def outlines_in(text: str) -> dict[str, frozenset[str]]:
    """Return the outlines that a page lists: titles as headings, sections as a list below."""
    outlines: dict[str, frozenset[str]] = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        outlines[title.strip()] = frozenset(re.findall(r"^- (.+?)\s*$", rest, flags=re.MULTILINE))
    return outlines


def headings_in(text: str) -> frozenset[str]:
    """Return the headings of a Markdown page below its title, of any level."""
    outside_of_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return frozenset(re.findall(r"^#{2,} (.+?)\s*$", outside_of_code, flags=re.MULTILINE))


def outlines() -> Outlines:
    """Return the outlines of all documents that may be cited."""
    listed = outlines_in((DOCS / "reference" / "documents.md").read_text(encoding="utf-8"))
    assert OWN.keys() <= listed.keys()
    assert not any(listed[title] for title in OWN), "their sections are the headings of their pages"
    return listed | {
        title: headings_in((DOCS / page).read_text(encoding="utf-8")) for title, page in OWN.items()
    }


def test_each_address_is_of_a_cited_document_and_on_the_page() -> None:
    cited = {source.document for each in catalogue().values() for source in each.sources}
    cited |= {source.document for each in invariants().values() for source in each.sources}
    cited |= {source.document for each in differences().values() for source in each.sources}
    page = (DOCS / "reference" / "documents.md").read_text(encoding="utf-8")
    assert ADDRESSES.keys() <= cited
    assert [each for each in ADDRESSES.values() if f"<{each}>" not in page] == []


def unknown_sources(
    found: Iterable[Requirement | Invariant | Difference], known: Outlines
) -> list[str]:
    """Return the citations of documents and sections that do not exist."""
    return [
        f"{each.id}: {source}"
        for each in found
        for source in each.sources
        if not _is_known(source, known)
    ]


def _is_known(source: Source, known: Outlines) -> bool:
    if source.versions:
        return source.document in RELEASES
    return source.section in known.get(source.document, ())


def test_every_source_names_a_document_and_a_section_that_exist() -> None:
    assert unknown_sources(catalogue().values(), outlines()) == []
    assert unknown_sources(differences().values(), outlines()) == []


@pytest.mark.parametrize(
    ("document", "section"),
    [
        ("Priority Queues", "Subscriptions"),
        ("Priority Stacks", "Priority Queues"),
        (PROTOCOL, "The weather"),
    ],
)
def test_a_source_that_does_not_exist_is_found(document: str, section: str) -> None:
    text = ONE.replace(
        'document = "Priority Queues", section = "Priority Queues"',
        f'document = "{document}", section = "{section}"',
    )
    found = read_catalogue("one.toml", text)
    assert unknown_sources(found, outlines()) == [f"nothing-lost: {document}, {section}"]


def test_every_document_that_is_listed_is_cited() -> None:
    promises: list[Requirement | Invariant | Difference] = [
        *catalogue().values(),
        *invariants().values(),
        *differences().values(),
    ]
    cited = {source for each in promises for source in each.sources}
    assert {each.document for each in cited if each.section} == set(outlines())


def test_headings_inside_of_code_are_no_sections() -> None:
    page = "# Title\n## One\n```\n## not one\n```\n### Two \n"
    assert headings_in(page) == {"One", "Two"}


def missing_headings(known: Outlines, texts: Iterable[str]) -> list[str]:
    """Return the titles and headings that occur in none of the texts, spaces aside."""
    squeezed = ["".join(text.split()) for text in texts]
    return [
        f"{title}: {heading}"
        for title, sections in known.items()
        for heading in sorted({title, *sections})
        if not any("".join(heading.split()) in text for text in squeezed)
    ]


def test_every_heading_occurs_in_the_original_documents() -> None:
    folder = os.environ.get(DOCUMENTS)
    if folder is None:
        pytest.skip(f"{DOCUMENTS} names no folder with the original texts")
    texts = [
        path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    ]
    foreign = {title: each for title, each in outlines().items() if title not in OWN}
    assert missing_headings(foreign, texts) == []


def test_a_heading_that_no_document_has_is_found() -> None:
    known = {"Priority Queues": frozenset({"Sub-queues", "Going Home"})}
    texts = ["<h1>Priority\nQueues</h1>", "<a name='Sub-queues'>"]
    assert missing_headings(known, texts) == ["Priority Queues: Going Home"]
