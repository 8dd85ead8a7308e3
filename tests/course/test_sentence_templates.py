"""What the sources compose is found, and the files that are made of it are current."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

pytest.importorskip("babel")

from babel.messages.pofile import read_po

from grader.course.sentence_templates import ENGINE, PACKAGES, WORDS, engine_sentences, templates
from grader.language.sentences import check_titles, first_paragraphs, is_clause, sentences_in

ROOT = Path(__file__).parents[2]
CATALOGS = [*ROOT.glob("grader/language/catalogs/*.po"), *ROOT.glob("reference/*/language/*.po")]


def messages(source: str, **how: bool) -> list[str]:
    return [found.message for found in sentences_in(source, **how)]


def test_the_templates_are_current():
    for path, text in templates(ROOT).items():
        assert path.read_text("utf-8") == text, "run: python -m grader.course.sentence_templates"


def test_words_that_stand_alone_are_still_in_their_sources():
    for name, words in WORDS.items():
        nodes = ast.walk(ast.parse((ENGINE / name).read_text("utf-8")))
        texts = [
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        for word in words:
            parts = re.findall(r"\w+", re.sub(r"\{\w+\}", " ", word)) if "{" in word else [word]
            for part in parts:
                assert any(part in text for text in texts), f"{name} has no '{part}' of '{word}'"


def test_no_word_is_given_that_the_search_finds():
    """Or a sentence stands in the catalogs twice, under two names of its placeholders."""

    def anonymous(message: str) -> str:
        return re.sub(r"\{\w+\}", "{}", message)

    for name in (name for name in WORDS if name.startswith(PACKAGES)):
        found = {anonymous(sentence.message) for sentence in engine_sentences(name)}
        assert found.isdisjoint(map(anonymous, WORDS[name])), name


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_translations_keep_what_comes_in(path):
    with path.open("rb") as file:
        catalog = read_po(file)
    for entry in catalog:
        texts = [entry.string] if isinstance(entry.string, str) else list(entry.string)
        forms = [entry.id] if isinstance(entry.id, str) else list(entry.id)
        if not entry.id or not all(texts):
            continue
        if "python-brace-format" in entry.flags:
            asked = {name for _, name, _, _ in Formatter().parse(forms[-1]) if name}
            for text in texts:
                assert {name for _, name, _, _ in Formatter().parse(text) if name} == asked, forms[0]
        if "python-format" in entry.flags:
            for text in texts:
                assert text.count("%(") == forms[-1].count("%("), forms[0]
                assert text.count("<") == forms[-1].count("<"), forms[0]


def test_a_field_is_called_as_what_it_holds():
    assert messages('x = f"`{named(part.label)}` has {counted_up(a)} of {b:.1f} points."') == [
        "`{label}` has {a} of {b} points."
    ]


def test_a_choice_of_words_makes_two_sentences():
    assert messages("""x = f"{name} {'is' if one else 'are'} wrong." """) == [
        "{name} is wrong.",
        "{name} are wrong.",
    ]


def test_counted_nouns_have_a_plural():
    (found,) = sentences_in('counted(n, "page")')
    assert (found.message, found.plural) == ("{number}\xa0page", "{number}\xa0pages")


def test_docstrings_names_and_operators_errors_are_left_out():
    source = '''"""A module of sentences."""
def f():
    """What it does is said here."""
    raise CourseError("The file is wrong. Change it.")
x = {"a key.": "a_name"}
'''
    assert messages(source) == []


def test_titles_of_checks_and_sentences_of_mistakes():
    source = 'def test_a():\n    """It is\n    right.\n\n    Not this.\n    """\n'
    assert [found.message for found in check_titles(source)] == ["It is right."]
    mistake = '"""It is\nwrong.\n\nFix it.\n\nLook for: _ @ _\n"""\n'
    assert [found.message for found in first_paragraphs(mistake)] == ["It is wrong.", "Fix it."]


def test_a_name_of_the_students_own_is_a_placeholder_of_a_hint():
    (found,) = first_paragraphs('"""Write {F = torch.nn.functional}.gelu(x)."""\n')
    assert (found.message, found.is_pattern) == ("Write {f}.gelu(x).", True)


def clauses(source: str) -> list[str]:
    return messages(source, clauses=True)


def test_a_clause_that_fills_a_placeholder_is_found_where_it_is_asked_for():
    source = 'kind = "the mean over all rows"\nraise Mismatch(f"It is {kind}.")\n'
    assert messages(source) == ["It is {kind}."]
    assert clauses(source) == ["the mean over all rows", "It is {kind}."]
    assert clauses('now = f"{names} are frozen after {call}; they should not be"') == [
        "{names} are frozen after {call}; they should not be"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "never says True", "training loss", "whole numbers", "labels_b do not count",
        "divided by sqrt(dim / heads)", "the class token's column, how much each patch looks at it",
    ],
)  # fmt: skip
def test_prose_is_a_clause(text):
    assert is_clause(text)


@pytest.mark.parametrize(
    "text",
    [
        "softmax() | Softmax(), sum()", "for block in self.blocks: x = block(x)", "embedding_dropout",
        "evaluate(model, loaders['validation'], criterion, device)", "EncoderBlock(dim, heads)", "def fit(",
        "class EarlyStopping", "pos / 10000^(2i / dim)", "torch.cat([tokens, patches], dim=1)", "accuracy",
        "`the training` loss", "blocks.{depth}", "for, return",
    ],
)  # fmt: skip
def test_code_and_names_are_no_clauses(text):
    assert not is_clause(text)


def test_what_names_something_for_checks_alone_is_no_clause():
    source = """
raise Mismatch("It is wrong.", look_for="the loop", diagnosis="a mistake", concerns="the same thing")
found = student.shared("known evaluations", make)
"""
    assert clauses(source) == ["It is wrong."]


def test_what_stands_beside_each_other_is_one_sentence():
    said = [
        "The last of {epochs} is left, although it is the worst.",
        "The last of {epochs} is left.",
    ]
    assert (
        messages('f"The last of {epochs} is left" + (", although it is the worst." if worst else ".")')
        == said
    )
    nested = """f"The last of {epochs} is left{', although it is the worst' if worst else ''}." """
    assert clauses(nested) == said
    assert messages("""f"It is {value}{f': {why}' if why else ''}." """) == [
        "It is {value}: {why}.",
        "It is {value}.",
    ]
    assert messages('message + " It is the share."') == ["It is the share."]


def test_of_too_many_forms_the_choices_are_clauses():
    choices = "".join(f"{{'of class {n}' if x else 'of no class'}} " for n in "abcd")
    assert clauses(f'f"It is {choices}."') == [
        "It is {value} {value_2} {value_3} {value_4} .",
        *("of class a", "of no class", "of class b", "of no class"),
        *("of class c", "of no class", "of class d", "of no class"),
    ]


def test_items_are_counted_as_the_judge_words_them():
    assert messages('returned.items(2, "index arrays")') == ["{count} index arrays"]
    assert messages('returned.items(None, "rows")') == ["rows"]
    assert messages("for name, value in table.items(): pass") == []
