import builtins
from pathlib import Path

import pytest

from grader.course.locate import located_course
from grader.domain.errors import CourseError, UsageError
from grader.language import ENGLISH, available, language, require_language, translation

pytest.importorskip("babel")
COURSE = 'title = "T"\nsecret = "s"\n'
PERSIAN = (
    "grader/language/catalogs",
    "reference/vit_cifar10/language",
    "reference/vit_defects/language",
    "reference/vit_finetune/language",
)


def test_the_engine_brings_persian_which_is_written_from_the_right():
    assert {"en", "fa"} <= set(available())
    persian = language("fa")
    assert (persian.code, persian.direction) == ("fa", "rtl")
    assert persian.translated("10 of 12 checks passed.") == "10 از 12 آزمون موفق بود."
    assert language("en") is ENGLISH


def test_what_a_later_catalog_says_wins(tmp_path: Path) -> None:
    (tmp_path / "fa.po").write_text(
        'msgid ""\nmsgstr ""\n\nmsgid "Points"\nmsgstr "امتیاز"\n', encoding="utf-8"
    )
    assert language("fa", [tmp_path]).gettext("Points") == "امتیاز"
    assert language("fa").gettext("Points") == "نمره"


def test_what_is_fuzzy_or_empty_is_not_shown(tmp_path: Path) -> None:
    text = 'msgid ""\nmsgstr ""\n\n#, fuzzy\nmsgid "Points"\nmsgstr "?"\n\nmsgid "Total"\nmsgstr ""\n'
    (tmp_path / "xx.po").write_text(text, encoding="utf-8")
    assert language("xx", [tmp_path]).messages == ()


def test_a_language_without_a_catalog_is_refused_by_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text(f'{COURSE}language = "tlh"\n')
    with pytest.raises(CourseError, match=r"course.toml: 'language' is 'tlh', .*Choose one of 'en', 'fa'"):
        located_course(tmp_path)


def test_a_course_may_bring_its_own(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_text(f'{COURSE}language = "eo"\n')
    (tmp_path / "language").mkdir()
    (tmp_path / "language" / "eo.po").write_text('msgid "Points"\nmsgstr "Poentoj"\n')
    assert located_course(tmp_path).language == "eo"


def test_what_is_no_catalog_says_where(tmp_path: Path) -> None:
    (tmp_path / "xx.po").write_text("this is no catalog\n")
    with pytest.raises(CourseError, match=r"xx\.po is not a catalog .*Poedit"):
        language("xx", [tmp_path])


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("Content-Type: text/plain; charset=utf-88", "is not a catalog (unknown encoding: utf-88)"),
        ("Plural-Forms: nplurals=2; plural=EXPRESSION;", ", in 'Plural-Forms'. Correct it in Poedit."),
    ],
)
def test_a_faulty_header_is_told(tmp_path: Path, header: str, told: str) -> None:
    (tmp_path / "xx.po").write_text(f'msgid ""\nmsgstr ""\n"{header}\\n"\n\nmsgid "Points"\nmsgstr "P"\n')
    with pytest.raises(CourseError) as caught:
        language("xx", [tmp_path])
    assert told in str(caught.value) and "xx.po" in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_catalog(tmp_path: Path) -> None:
    (tmp_path / "xx.po").write_text('msgid "Points"\nmsgstr "P"\n', encoding="utf-8-sig")
    assert language("xx", [tmp_path]).translated("Points") == "P"


def test_without_babel_english_needs_nothing_and_others_say_what_to_install(monkeypatch):
    monkeypatch.setattr(translation, "find_spec", lambda name: None)
    require_language("en", "course.toml: 'language'")
    with pytest.raises(UsageError, match=r"pip install 'vit-grader\[language\]'"):
        require_language("fa", "course.toml: 'language'")
    ordinary = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("babel"):
            raise ImportError(name)
        return ordinary(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"vit-grader\[language\]"):
        list(translation._messages(translation.CATALOGS / "fa.po"))


def is_translated(path):
    """The English of a catalog -> whether it is translated."""
    from babel.messages.pofile import read_po

    with path.open("rb") as file:
        entries = [entry for entry in read_po(file) if entry.id]
    return {
        entry.id if isinstance(entry.id, str) else tuple(entry.id): bool(entry.string and all(entry.string))
        for entry in entries
    }


@pytest.mark.parametrize("folder", PERSIAN)
def test_persian_is_whole(course_root, folder):
    """Few sentences are left in English: code, and addresses."""
    english = is_translated(course_root / folder / "messages.pot")
    persian = is_translated(course_root / folder / "fa.po")
    assert set(persian) <= set(english)
    assert sum(persian.values()) > 0.97 * len(english)
