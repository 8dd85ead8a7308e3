"""The tables that migrations make are those that the statements use."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from grader.gradebook import Gradebook
from grader.gradebook.database import VERSION
from grader.gradebook.tables import METADATA

OURS = {"remove_constraint", "remove_index", "add_fk"}  # what the statements need not know of


def test_the_newest_migration_is_the_version_that_is_asked_for() -> None:
    config = Config()
    config.set_main_option("script_location", "grader.gradebook:migrations")
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == VERSION


def test_migrations_and_tables_agree(tmp_path: Path) -> None:
    with Gradebook(tmp_path) as book, book._database.writing() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    assert [one for one in differences if one[0] not in OURS] == []


def test_a_book_that_was_never_finished_is_finished(tmp_path: Path) -> None:
    (tmp_path / "gradebook.sqlite").touch()
    with Gradebook(tmp_path) as book:
        assert book.students() == ()


def test_the_book_is_not_brought_up_to_date_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Gradebook(tmp_path) as book, book._database.reading():
        pass
    monkeypatch.setattr("alembic.command.upgrade", None)
    with Gradebook(tmp_path) as book:
        assert book.students() == ()
