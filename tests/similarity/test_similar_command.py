"""`grader similar` on a class with copies, hostile files and nothing at all."""

import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.usefixtures("on_warm_hosts")


@pytest.fixture
def similar(tmp_path):
    """Run the command on a class of files; the result, the page and the rows of the table."""

    def run(files, *more, before=None):
        for name, listed in (("now", files), ("before", before or {})):
            (tmp_path / name).mkdir(exist_ok=True)
            for path, content in listed.items():
                data = content.encode() if isinstance(content, str) else content
                (tmp_path / name / path).write_bytes(data)
        out = tmp_path / "out"
        earlier = ["--before", str(tmp_path / "before")] if before else []
        arguments = [str(tmp_path / "now"), "--assignment", "vit_defects", "--out", str(out), *earlier, *more]
        done = CliRunner().invoke(cli, ["--course", str(ROOT), "similar", *arguments])
        if done.exit_code:
            return done, "", []
        with (out / "similarity.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return done, (out / "similarity.html").read_text("utf-8"), rows

    return run


def named(number, suffix):
    """A file's name as the assignment asks for it."""
    return f"4001012{number:02d}_Lab8_Homework.{suffix}"


@pytest.mark.slow
def test_a_class_with_copies_and_hostile_files(similar, solutions, saved, state, picture, in_base64):
    """Copies are found by each of the three; what cannot be read is told in a sentence."""
    first, second, third, fourth = (solutions.solution(choice) for choice in solutions.apart(4))
    mark = "</code></pre><script>alert(1)</script>{{ 7 * 7 }}\u202e"
    hostile = first.replace("loss.backward()", f"loss.backward()  # {mark}")
    copy = json.loads(solutions.as_notebook(solutions.disguised(first)))
    noise = in_base64(picture(9, size=(1300, 1000)))
    copy["cells"][0]["outputs"] = [{"output_type": "display_data", "data": {"image/png": noise}}]
    assert len(noise) > 5_000_000
    files = {
        named(1, "py"): hostile,
        named(2, "ipynb"): json.dumps(copy),
        named(3, "py"): second,
        named(3, "pth"): saved(state(1)),
        named(4, "py"): third,
        named(4, "pth"): saved({f"net.{key}": value for key, value in state(1).items()}),
        named(5, "ipynb"): solutions.with_picture(solutions.as_notebook(fourth), noise),
        named(6, "py"): solutions.template(),
        named(7, "py"): "def broken(:\n",
        named(8, "py"): "x = " + "-" * 20_000 + "1",
        named(9, "ipynb"): "no notebook",
        named(10, "py"): "مدل = 'شبکه'\nprint(مدل)\n",
    }
    done, page, rows = similar(files)
    assert done.exit_code == 0, done.output
    pairs = {(row["one"][-2:], row["other"][-2:]): row for row in rows}
    assert set(pairs) == {("01", "02"), ("02", "05"), ("03", "04")}
    assert float(pairs["01", "02"]["code_of_one_in_other"]) > 0.9
    assert pairs["02", "05"]["identical_figures"] == "1"
    assert pairs["03", "04"]["checkpoint"] == "identical"
    assert "&lt;script&gt;alert(1)" in page
    assert "{{ 7 * 7 }}" in page
    assert "<script" not in page
    assert "\u202e" not in page
    assert "never a deduction" in page
    for number in (6, 7, 8, 9, 10):
        assert re.search(rf"<b>4001012{number:02d}</b>: <span[^>]*>The code was not compared", page), number
    again = similar(files)[1]
    assert re.sub(r"Page made.*", "", again) == re.sub(r"Page made.*", "", page)


@pytest.mark.slow
def test_last_year_and_a_threshold(similar, solutions):
    """An earlier class is marked; a threshold of 1 lists only what is the same throughout."""
    text = solutions.solution(solutions.apart(1)[0])
    before = {named(50, "py"): solutions.disguised(text), named(1, "py"): text}
    changed = text.replace("nn.GELU()", "nn.ReLU()").replace("optimizer.step()", "optimizer.step(None)")
    assert changed != text
    _, page, rows = similar({named(1, "py"): changed}, before=before)
    assert [(row["one"], row["other"], row["other_is_of"]) for row in rows] == [
        ("400101201", "400101250", "an earlier class")
    ]
    assert "400101250 (before)" in page
    assert similar({named(1, "py"): changed}, "--threshold", "1", before=before)[2] == []


def test_a_class_of_one(similar, solutions):
    """There is nothing to compare, and the page says so."""
    done, page, rows = similar({named(1, "py"): solutions.reference()})
    assert done.exit_code == 0
    assert rows == []
    assert "only one submission" in page


def test_nothing_to_compare_is_told(similar):
    """A folder without a submission is a sentence."""
    done, _, _ = similar({"notes.txt": "x"})
    assert done.exit_code == 2
    assert "holds no submission" in done.output


def test_the_class_page_lists_the_pairs_and_no_report_does(graded_class, solutions, tmp_path):
    """Also after the class is scored again; it holds no grade, and leads to the page side by side."""
    text = solutions.solution(solutions.apart(1)[0])
    (tmp_path / "now").mkdir()
    for number, own in ((1, text), (2, solutions.disguised(text))):
        (tmp_path / "now" / named(number, "py")).write_text(own, "utf-8")
    words = ["--course", str(ROOT), "similar", str(tmp_path / "now"), "--assignment", "vit_defects"]
    before = (graded_class / "scores.csv").read_bytes()
    done = CliRunner().invoke(cli, [*words, "--out", str(graded_class)])
    assert done.exit_code == 0, done.output
    page = (graded_class / "index.html").read_text("utf-8")
    section = re.search(r'id="similar">.*?</div>', page, re.S).group()
    assert "1\N{NO-BREAK SPACE}pair" in section and "holds the grades" not in section
    for student in ("400101201", "400101202"):
        assert f'href="students/{student}/report.html"' in section
        assert "in common with another" not in (graded_class / f"students/{student}/report.html").read_text(
            "utf-8"
        )
    assert re.search(r"\d+ % and \d+ % of their own code", section) and 'href="similarity.html"' in page
    assert (graded_class / "scores.csv").read_bytes() == before
    again = CliRunner().invoke(cli, ["regrade", str(graded_class), "--course", str(ROOT), "--by", "ta1"])
    assert again.exit_code == 0 and 'id="similar"' in (graded_class / "index.html").read_text("utf-8")
    published = [
        "publish",
        str(graded_class),
        "--course",
        str(ROOT),
        "--to",
        str(tmp_path / "out"),
        "--partial",
    ]
    assert CliRunner().invoke(cli, [*published, "--by", "ta1"]).exit_code == 0
    assert (tmp_path / "out/instructors/similarity.html").is_file()
    told = [path.read_text("utf-8") for path in (tmp_path / "out/students").rglob("*.html")]
    assert told and not any("similarity" in one for one in told)
    (graded_class / "similarity.json").write_text("{")
    CliRunner().invoke(cli, ["regrade", str(graded_class), "--course", str(ROOT), "--by", "ta1"])
    assert 'id="similar"' not in (graded_class / "index.html").read_text("utf-8")


def test_members_of_a_group_are_not_compared(similar, tmp_path, solutions):
    """The groups of `grader grade`: both members handed in what they wrote together."""
    text = solutions.solution(solutions.apart(1)[0])
    groups = tmp_path / "groups.csv"
    groups.write_text("group;student_id\nG1;400101201\nG1;400101202\n", encoding="utf-8-sig")
    files = {named(number, "py"): text for number in (1, 2, 3)}
    done, page, rows = similar(files, "--groups", str(groups))
    said = "Members of one group were not compared with each other: 1\xa0group."
    assert said in page and said in done.stderr
    pairs = [(row["one"], row["other"]) for row in rows]
    assert pairs == [("400101201", "400101203"), ("400101202", "400101203")]
