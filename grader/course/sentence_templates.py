"""`python -m grader.course.sentence_templates`: makes the templates of the catalogs from the sources.

The engine's is `grader/language/catalogs/messages.pot`, that of an assignment of a course
`reference/<id>/language/messages.pot`. Poedit updates a catalog from them.
"""

import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po
from jinja2 import Environment, nodes
from jinja2.ext import babel_extract

from grader.course.course_files import file_text
from grader.course.editions import every_edition
from grader.files.known_folders import visible
from grader.language.sentences import (
    SourceSentence,
    check_titles,
    counted_pattern,
    first_paragraphs,
    sentences_in,
)
from grader.language.translation import CATALOGS, FOLDER

CATALOG_TEMPLATE = "messages.pot"
ENGINE = Path(__file__).parents[1]
# the packages that compose sentences for students; in modules of WITH_WORDS, single words are labels, too
PACKAGES = (
    "domain",
    "kit",
    "analysis",
    "intake",
    "training",
    "judge",
    "scoring",
    "reports",
    "grading",
    "packages",
)
WITH_CLAUSES = ("kit", "judge")  # what they say of a value fills the placeholders of sentences
WITH_WORDS = (
    "reports/student",
    "reports/measured_words.py",
    "domain/submission_result.py",
    "domain/formatting.py",
    "analysis/effects.py",
    "scoring/measurements.py",
    "scoring/lateness.py",
    "scoring/submission_score.py",
    "analysis/notebook_commands.py",
    "analysis/slicing.py",
)
NOT_FOR_STUDENTS = (
    "reports/whole_class",
    "reports/plots",
    "reports/results_json",
    "grading/class_",
    "grading/grade_class",
    "grading/time_",
    "packages/package_",
    "packages/install_",
    "packages/classroom_",
    "packages/question_",
    "packages/parent_",
    "packages/graded_",
)
# words and patterns that the search for sentences does not find: in the source they look like names
WORDS = {
    "analysis/script/model_that_counts.py": ("its weights are saved", "it is trained last"),
    "analysis/script/training_script.py": (
        "it is saved under its name, or trained last",
        "no statement trains a model of the graded class",
        "it trains another model than the one that counts",
    ),
    "analysis/suspicious_code.py": (
        "{name} is used",
        "{name} is handed on as a value",
        "{name} is given another value",
        "a name that is computed is resolved ({function})",
        "a name of {base} that is computed is resolved ({function})",
    ),
    "domain/analyzed_program.py": (
        "it needs data, and is executed when the grader trains",
        "the training",
        "the loading",
    ),
    "domain/score.py": (
        "{minutes} min late",
        "{hours} h late",
        "{hours} h {minutes} min late",
        "{days} day late",
        "{days} days late",
        "{days} day {minutes} min late",
        "{days} days {minutes} min late",
        "{days} day {hours} h late",
        "{days} days {hours} h late",
        "{days} day {hours} h {minutes} min late",
        "{days} days {hours} h {minutes} min late",
    ),
    "domain/submission.py": ("code", "report", "checkpoint", "text", "raw"),
    "grading/submission_run.py": ("reading", "pages", "checks", "training"),
    "intake/upload.py": ("the modification time on the disk",),
    "kit/drawn_figures.py": (
        "training loss",
        "training accuracy",
        "validation loss",
        "validation accuracy",
    ),
    "kit/transformers/token_behavior.py": ("{images} of {tokens}",),
    "judge/remote_objects.py": ("What `{label}` returned",),
    "judge/value.py": (
        "nothing (None)",
        "values",
        "{count} values",
        *(
            f"{the} {ordinal} of {{label}}"
            for the in ("the", "The")
            for ordinal in ("first", "second", "third", "fourth", "fifth", "sixth")
        ),
    ),
    "judge/verdict.py": (
        "at {line}",
        "{type} at {where}",
        "`{component}` uses `{name}`. {name_2}",
    ),
    "protocol/error_kinds.py": (
        "no model was found in the source: no statement makes one of the graded class",
        "{size} is not a usable batch size: expected a whole number above zero",
        "the model was made with something other than numbers and texts, so it cannot be made again",
        "what was found",
        "nothing in the source trains a model of the graded class",
        "it took no step on the training images",
        "the weights that are saved belong to no model of the graded class that was trained",
        "it trains several models, for more epochs than can be kept",
        "the model has more weights than can be measured: at most {megabytes} MB in {tensors} tensors",
        "the code that prepares its images could not be executed on its own",
        "the code that prepares its images could not be executed on its own: {raised}",
        "the loop could not be continued",
        "the loop could not be continued: {raised}",
    ),
    "protocol/link.py": (
        "no answer within {seconds} s",
        "it answered with something that is not an answer",
    ),
    "reports/measured_words.py": ("{number}\N{NO-BREAK SPACE}hidden test images",),
    "reports/student/findings.py": ("`{name}`: {title}",),
    "reports/student/grade_summary.py": ("earned",),
    "reports/student/trained_models.py": ("base",),
    "reports/student/training_charts.py": ("accuracy", "epoch"),
    "reports/student/training_texts.py": (
        "trained",
        "loops",
        "validation",
        "seeds",
        "but",
        "epochs",
        "size",
        "{epochs}: {how}",
        "{optimizer}, {rate}",
    ),
    "sandbox/child_processes.py": (
        "it was ended by signal {signal}",
        "it ended by itself with exit code {code}",
        "it closed its replies and went on",
    ),
    "sandbox/process_limits.py": (
        "it used more than its limit of {megabytes} MB of memory",
        "it used more than its limit of {seconds} s of processor time",
        "it wrote more than its limit of {megabytes} MB into one file",
        "its limit is {megabytes} MB of memory",
        "its limit is {megabytes} MB for one file",
        "its limit is {megabytes} MB of files, and some thousands of them",
        "its limit is {megabytes} MB for one file and {all_megabytes} MB in all",
        "its limit is {processes} processes and threads",
        "its limit is {files} open files at once",
    ),
    "scoring/measurements.py": ("{start} ({where}): {reason}", "{start} ({where})", "{counted};"),
    "scoring/rubric_lines.py": ("{places}: {reason}", "{place} (and {rest} more)", "{name} at {place}"),
    "training/called_record.py": ("after {call}",),
    "training/measured_training.py": ("it raised an exception", "it raised an exception: {raised}"),
    "training/submitted_weights.py": (
        "save it again with `torch.save(model.state_dict(), path)`",
        "it was not loaded",
        "{file}: {fault}.",
        "its tensors claim more memory than the file can hold",
        "{file}: it holds a whole pickled object, which is not loaded but counts as handed in: the next "
        "time, save `model.state_dict()` instead of `model`.",
        "{tensor} has the shape {stored} in it and {expected} in the model",
        "{layers} has {entries} in it and {expected} in the model",
        "{sizes} (in the code: {settings})",
        "its tensors are others",
        "a tensor",
        "a list of layers",
        "{missing} of the model's {tensors} tensors are missing in it and {unknown} of its own are not in "
        "the model",
        "{counts} (for example {name} is missing)",
        "{counts} (for example {name} is not in the model)",
    ),
    "training/training_record.py": (
        "of the last epoch",
        "of the weights that the code restored at the end",
        "that the code restored at the end",
        "the mean of the last {number} epochs",
        "the mean of the last {number} epochs;",
        "{counted}, with the augmentation that is in the test transform",
        "{counted}, without the augmentation that is in the test transform",
    ),
}
PAGES = ("base", "macros", "student", "answers", "submission", "oral")
_OPTIONS = {"trimmed": "true", "newstyle_gettext": "true", "trim_blocks": "true", "lstrip_blocks": "true"}


def engine_template() -> str:
    """The template of the engine's catalogs, as text."""
    catalog = _catalog("the grader's reports")
    pages = ENGINE / "reports" / "templates"
    for path in sorted(pages.glob("*.j2")):
        if path.name.partition(".")[0].partition("_")[0] in PAGES:
            _add_page(catalog, path)
    for package in PACKAGES:
        for path in sorted((ENGINE / package).rglob("*.py")):
            name = path.relative_to(ENGINE).as_posix()
            if not name.startswith(NOT_FOR_STUDENTS):
                _add_sentences(catalog, f"grader/{name}", engine_sentences(name))
                _add_words(catalog, name)
    for name in WORDS:
        if not name.startswith(PACKAGES):
            _add_words(catalog, name)
    return _template_text(catalog)


def engine_sentences(name: str) -> Iterator[SourceSentence]:
    """The sentences that the search finds in a module of the engine, `judge/verdict.py`."""
    source = (ENGINE / name).read_text(encoding="utf-8")
    return sentences_in(
        source, words=name.startswith(WITH_WORDS), clauses=name.partition("/")[0] in WITH_CLAUSES
    )


def assignment_template(folder: Path) -> str:
    """The template of an assignment's catalogs, as text.

    Args:
        folder: `reference/<id>`.
    """
    catalog = _catalog(folder.name)
    stated = file_text(folder / "assignment.toml", "assignment.toml")
    for text in every_edition(stated, "assignment.toml"):
        titles = (SourceSentence(title, 1) for title in _texts_of_table(tomllib.loads(text)))
        _add_sentences(catalog, "assignment.toml", titles)
    _add_sentences(catalog, "questions.toml", _oral_questions(folder / "questions.toml"))
    sources = ("checks/**/*.py", "trained/**/*.py", "oracle/**/*.py", "oracle.py")
    for path in visible(folder, *sources):
        name = path.relative_to(folder).as_posix()
        source = file_text(path, name)
        _add_sentences(catalog, name, check_titles(source))
        _add_sentences(catalog, name, sentences_in(source, errors=True, clauses=True))
    for path in visible(folder, "mistakes/**/*.py"):
        name = path.relative_to(folder).as_posix()
        _add_sentences(catalog, name, first_paragraphs(file_text(path, name)))
    return _template_text(catalog)


def templates(root: Path) -> dict[Path, str]:
    """Path -> text, for all templates of the engine and of a course.

    Args:
        root: The folder of `course.toml`.
    """
    made = {CATALOGS / CATALOG_TEMPLATE: engine_template()}
    for path in sorted(root.glob(f"reference/*/{FOLDER}")):
        made[path / CATALOG_TEMPLATE] = assignment_template(path.parent)
    return made


def _texts_of_table(table: dict[str, Any]) -> Iterator[str]:
    """The titles, reasons and notes in an `assignment.toml`."""
    for key, value in table.items():
        if key in ("title", "reason", "note") and isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _texts_of_table(value)
        elif isinstance(value, list):
            for element in value:
                if isinstance(element, dict):
                    yield from _texts_of_table(element)


def _oral_questions(path: Path) -> Iterator[SourceSentence]:
    """The texts of oral questions, which students read; the notes on them are for examiners."""
    if path.is_file():
        for question in tomllib.loads(file_text(path, path.name))["question"]:
            text = " ".join(question["text"].split())
            yield SourceSentence(text, 1, is_pattern="{" in text)


def _catalog(project: str) -> Catalog:
    catalog = Catalog(project=project, charset="utf-8", header_comment=f"# Sentences of {project}.")
    catalog.creation_date = datetime(2026, 1, 1, tzinfo=UTC)  # so that the same sources make the same file
    return catalog


def _add_words(catalog: Catalog, name: str) -> None:
    """Add what a module of the engine says and the search for sentences does not find."""
    words = (SourceSentence(word, 1, is_pattern="{" in word) for word in WORDS.get(name, ()))
    _add_sentences(catalog, f"grader/{name}", words)


def _add_sentences(catalog: Catalog, name: str, sentences: Iterator[SourceSentence]) -> None:
    for sentence in sentences:
        message = (sentence.message, sentence.plural) if sentence.plural else sentence.message
        flags = ["python-brace-format"] if sentence.is_pattern else []
        catalog.add(message, locations=[(name, sentence.line)], flags=flags)


def _add_page(catalog: Catalog, path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    name = f"grader/reports/templates/{path.name}"
    extracted = babel_extract(BytesIO(source.encode()), ("_", "gettext", "ngettext"), [], _OPTIONS)
    for line, _, message, _ in extracted:
        texts = (message,) if isinstance(message, str) else tuple(text for text in message or () if text)
        flags = ["python-format"] if any("%(" in text for text in texts) else []
        catalog.add(texts[:2] if len(texts) > 1 else texts[0], locations=[(name, line)], flags=flags)
    parsed = Environment(extensions=["jinja2.ext.i18n"], trim_blocks=True, lstrip_blocks=True).parse(source)
    for node in parsed.find_all(nodes.Filter):
        if node.name == "counted":
            _add_counted(catalog, name, node.lineno, node.args)
    for call in parsed.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "more":
            _add_counted(catalog, name, call.lineno, call.args[2:])


def _add_counted(catalog: Catalog, name: str, line: int, words: list[nodes.Expr]) -> None:
    noun_and_plural = [str(word.value) for word in words if isinstance(word, nodes.Const)]
    if noun_and_plural:
        catalog.add(
            counted_pattern(*noun_and_plural), locations=[(name, line)], flags=["python-brace-format"]
        )


def _template_text(catalog: Catalog) -> str:
    file = BytesIO()
    write_po(file, catalog, width=110, omit_header=True, sort_by_file=False, include_lineno=False)
    head = (
        f"{catalog.header_comment}\n# Made by `python -m grader.course.sentence_templates`; do not edit.\n"
        'msgid ""\nmsgstr ""\n"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        '"Content-Transfer-Encoding: 8bit\\n"\n\n'
    )
    return head + file.getvalue().decode("utf-8")


def main(root: Path) -> None:
    """Write the templates.

    Args:
        root: The folder of a course, with its assignments.
    """
    for path, text in templates(root).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
