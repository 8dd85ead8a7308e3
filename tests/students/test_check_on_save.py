"""A student's file that is checked again each time it is saved."""

import shutil
import threading
import time
from pathlib import Path

import pytest

from grader.domain.errors import SubmissionError
from grader.domain.evidence import Status
from grader.students.check_on_save import check_on_every_save, saves_of
from grader.students.homework import local_assignment

PATIENCE = 60.0


class Watcher:
    """Counts the saves of a file from a thread of its own."""

    def __init__(self, path: Path) -> None:
        self.seen = 0
        self._saves = saves_of(path)
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        for _ in self._saves:
            self.seen += 1

    def reaches(self, count: int) -> bool:
        deadline = time.monotonic() + PATIENCE
        while self.seen < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.seen == count


@pytest.mark.slow
def test_every_way_of_saving_is_seen_once(tmp_path):
    path = tmp_path / "homework.py"
    path.write_text("x = 1\n", encoding="utf-8")
    watcher = Watcher(path)
    path.write_text("x = 2\n", encoding="utf-8")  # into the file
    assert watcher.reaches(1)
    other = tmp_path / "homework.py~"
    other.write_text("x = 3\n", encoding="utf-8")
    other.replace(path)  # another file in its place
    assert watcher.reaches(2)
    path.rename(tmp_path / "backup.py")  # the old one out of the way, then a new one
    time.sleep(0.1)
    path.write_text("x = 4\n", encoding="utf-8")
    assert watcher.reaches(3)
    path.write_text("x = 4\n", encoding="utf-8")  # the same again
    (tmp_path / "other.py").write_text("y = 1\n", encoding="utf-8")
    path.write_text("", encoding="utf-8")  # an editor that empties it before it writes
    time.sleep(0.3)
    path.write_text("x = 5\n", encoding="utf-8")
    assert watcher.reaches(4)


def test_a_save_during_the_first_check_is_not_lost(tmp_path):
    path = tmp_path / "homework.py"
    path.write_text("x = 1\n", encoding="utf-8")
    saves = saves_of(path)
    path.write_text("x = 2\n", encoding="utf-8")  # before anybody waits for it
    next(saves)


@pytest.mark.slow
def test_each_save_is_checked_as_the_file_is_then(course_root, solved, tmp_path, warm_workers):
    folder = tmp_path / "vit"
    shutil.copytree(course_root / "template" / "vit_defects", folder)
    path = folder / "homework.py"
    path.write_text(solved, encoding="utf-8")
    broken = solved.replace("return self.fn(self.norm(x), **kwargs)", "return None")
    assert broken != solved
    shown = []

    def show(attempt):
        reported = []
        try:
            found = attempt(lambda program: None, reported.append)
        except SubmissionError as error:
            shown.append(str(error))
            return
        assert tuple(reported) == found.findings
        shown.append({one.component for one in found.findings if one.status is not Status.PASSED})

    def saves():
        for text in (broken, "class (", solved):
            path.write_text(text, encoding="utf-8")
            yield

    check_on_every_save(path, local_assignment([folder]), saves(), show)
    assert shown[0] == set() and shown[1] == {"PreNorm"} and shown[3] == set()
    assert "homework.py:1: is not correct Python" in shown[2]
    assert warm_workers == [()] + [("--warm",)] * 4, "a worker is warm before the next save"
    assert not (folder / "__pycache__").exists()


def test_what_shows_may_end_it(course_root, tmp_path, monkeypatch, worker_processes):
    def show(attempt):
        raise KeyboardInterrupt

    path = tmp_path / "homework.py"
    path.write_text("x = 1\n", encoding="utf-8")
    local = local_assignment([course_root / "template" / "vit_defects"])
    with pytest.raises(KeyboardInterrupt):
        check_on_every_save(path, local, iter(()), show)


def test_a_module_that_is_saved_counts_as_a_save(tmp_path):
    path = tmp_path / "homework.py"
    path.write_text("from parts.helpers import x\n", encoding="utf-8")
    helpers = tmp_path / "parts" / "helpers.py"
    helpers.parent.mkdir()
    helpers.write_text("x = 1\n", encoding="utf-8")
    watcher = Watcher(path)
    helpers.write_text("x = 2\n", encoding="utf-8")
    assert watcher.reaches(1)


@pytest.mark.slow
def test_one_part_alone_is_checked_after_each_save(course_root, tmp_path, warm_workers):
    folder = tmp_path / "vit"
    shutil.copytree(course_root / "template" / "vit_defects", folder)
    path, made = folder / "homework.py", []
    local = local_assignment((folder,)).of_part("Attention")
    check_on_every_save(
        path, local, iter([None]), lambda attempt: made.append(attempt(lambda read: None, lambda found: None))
    )
    assert len(made) == 2 and not any(check.plans or check.passed for check in made)
    assert {found.component for check in made for found in check.findings} == {"Attention"}
