"""Which file is taken as what, and the sentence for each that is not."""

import io
import json
import struct
import zipfile
from dataclasses import replace

import pytest
import torch

from grader.domain.assignment import Component
from grader.domain.submission import RefusedFile, Role, Submission
from grader.intake import file_roles, intake

PDF = b"%PDF-1.7\n..."
STEM = "400101204_Lab8_Homework"


def weights(legacy=False):
    stream = io.BytesIO()
    torch.save({"layer": torch.zeros(3)}, stream, _use_new_zipfile_serialization=not legacy)
    return stream.getvalue()


@pytest.fixture
def accepted(folder, assignment):
    """The intake of one student's files."""

    def of(files, partial=False):
        root = folder(files)
        paths = tuple(sorted(root / name for name in files))
        return intake(Submission("400101204", "vit_defects", paths, "0", partial=partial), assignment)

    return of


def name(path):
    return path.name if path is not None else None


def test_three_good_files_are_accepted_without_a_word(accepted):
    result = accepted({f"{STEM}.py": "x = 1", f"{STEM}.pth": weights(), f"{STEM}.pdf": PDF})
    assert (name(result.code), name(result.checkpoint), name(result.report)) == (
        f"{STEM}.py",
        f"{STEM}.pth",
        f"{STEM}.pdf",
    )
    assert result.refused == () and result.missing == () and result.notes == ()


def test_what_is_missing_is_told_unless_a_file_was_given_by_itself(accepted):
    assert accepted({f"{STEM}.py": "x"}).missing == (Role.CHECKPOINT, Role.REPORT)
    assert accepted({f"{STEM}.py": "x"}, partial=True).missing == ()
    assert accepted({f"{STEM}.py": ""}).missing == (Role.CODE, Role.CHECKPOINT, Role.REPORT)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (f"{STEM}.py", b"", ["is empty"]),
        (f"{STEM}.py", b"#" * 2_500, ["2.5 kB", "at most 2 kB"]),
        (f"{STEM}.ipynb", b"#" * 1_100_000, ["1.1 MB", "at most 1 MB", "outputs"]),
        (f"{STEM}.pth", b"#" * 1_100_000, ["at most 1 MB", "state_dict"]),
        (f"{STEM}.pdf", b"#" * 1_100_000, ["at most 1 MB"]),
        (f"{STEM}.pdf", b"hello", ["is not a PDF", "Export"]),
        (f"{STEM}.pdf", b"PK\x03\x04hello", ["Word"]),
        (f"{STEM}.docx", b"PK", ["was not asked for", ".pdf"]),
        (f"{STEM}.rar", b"Rar!", ["not an archive that can be unpacked"]),
        (f"{STEM}.zip", b"nothing", ["archive that was not unpacked"]),
        ("conftest.py", b"x", ["configuration file"]),
        ("PyTest.ini", b"x", ["configuration file"]),
        ("sitecustomize.py", b"x", ["configuration file"]),
        ("torch.py", b"x", ["library"]),
        (".secret.py", b"x", ["hidden"]),
    ],
)
def test_a_file_that_is_not_taken_gets_a_sentence_with_a_remedy(accepted, file, content, words):
    result = accepted({file: content})
    (refused,) = result.refused
    assert refused.name == file and refused.reason.startswith(f"{file}: ")
    assert all(word in refused.reason for word in words), refused.reason
    assert (result.code, result.checkpoint, result.report) == (None, None, None)


def test_what_was_set_aside_on_unpacking_keeps_its_reason(folder, assignment):
    root = folder({f"{STEM}.py": "x", "all.zip": "x"})
    paths = (root / f"{STEM}.py", root / "all.zip")
    aside = (RefusedFile("all.zip", "all.zip: is a bomb."), RefusedFile("a/b.py", "a/b.py: is a link."))
    result = intake(Submission("400101204", "vit_defects", paths, "0", set_aside=aside), assignment)
    assert result.refused == aside and name(result.code) == f"{STEM}.py"


@pytest.mark.parametrize(
    "file",
    ["conftest.py", "sitecustomize.py", "usercustomize.py", "torch.py", "Torch.PY", "numpy.py", "typing.py"],
)
def test_files_that_python_or_its_tools_would_load_are_never_the_code(accepted, file):
    """Even by itself, and beside the right one."""
    for others in ({}, {f"{STEM}.py": "x"}):
        result = accepted({file: "raise SystemExit", **others}, partial=not others)
        assert name(result.code) == next(iter(others), None)
        assert [refused.name for refused in result.refused] == [file]


def test_a_link_is_not_followed(folder, assignment):
    root = folder({"secret.txt": "x"})
    (root / f"{STEM}.py").symlink_to(root / "secret.txt")
    submission = Submission("400101204", "vit_defects", (root / f"{STEM}.py",), "0")
    assert "link" in intake(submission, assignment).refused[0].reason


@pytest.mark.parametrize(
    ("files", "best"),
    [
        ([f"{STEM}.py", "helper.py", "400101204_old.py"], f"{STEM}.py"),
        ([f"{STEM}.ipynb", "400101204.py"], f"{STEM}.ipynb"),
        ([f"{STEM}.py", f"{STEM}.ipynb"], f"{STEM}.py"),
        (["homework.ipynb", "data.py"], "homework.ipynb"),
        (["400101204_lab8_homework (1).py", "999999999_Lab8_Homework.py"], "400101204_lab8_homework (1).py"),
    ],
)
def test_of_several_code_files_the_best_named_is_taken(accepted, files, best):
    result = accepted(dict.fromkeys(files, "x"))
    assert name(result.code) == best
    assert {refused.name for refused in result.refused} == set(files) - {best}
    assert all(best in refused.reason for refused in result.refused)


@pytest.mark.parametrize("named", ["homework", STEM])
@pytest.mark.parametrize("written", [".py", ".ipynb"])
def test_of_script_and_notebook_the_one_counts_in_which_more_is_written(accepted, named, written):
    """The course hands out both, and students hand in the whole folder: the other one is full of stubs."""
    stub = 'raise NotImplementedError("TODO {}: what")\n'
    files = {
        ".py": stub.format("a") + stub.format("b"),
        ".ipynb": f'{{"cells": [{json.dumps(stub.format("a"))}, {json.dumps(stub.format("b"))}]}}',
    }
    files[written] = files[written].replace("TODO b", "b")
    result = accepted({f"{named}{suffix}": text for suffix, text in files.items()})
    assert name(result.code) == f"{named}{written}"
    [refused] = result.refused
    because = f"more is written in {named}.ipynb" if written == ".ipynb" else f"{named}.py fits"
    assert f"was set aside because {because}" in refused.reason


@pytest.mark.parametrize("other", ['{"cells": []}', '{"cells": ["print(1)"]}'])
def test_a_notebook_without_any_part_is_no_rival_of_an_unfinished_script(folder, assignment, other):
    assignment = replace(assignment, components=(Component("A", "class", ""), Component("b", "function", "")))
    script = 'class A:\n    pass\n\n\ndef b():\n    raise NotImplementedError("TODO b: what")\n'
    root = folder({"homework.py": script, "homework.ipynb": other})
    paths = (root / "homework.ipynb", root / "homework.py")
    result = intake(Submission("400101204", "vit_defects", paths, "0"), assignment)
    assert name(result.code) == "homework.py"


def test_a_second_choice_counts_where_the_first_is_unusable(accepted):
    assert name(accepted({f"{STEM}.py": "", "homework.py": "x"}).code) == "homework.py"


def test_a_name_that_is_nearly_right_is_accepted_with_a_note(accepted):
    result = accepted({"400101204.PTH": weights(), "400101204_Lab8_Homework.py": "x"})
    assert name(result.checkpoint) == "400101204.PTH"
    assert result.notes == (
        "400101204.PTH was taken as 400101204_Lab8_Homework.pth: use that name next time.",
    )
    assert accepted({"solution.py": "x"}, partial=True).notes == ()


def test_a_data_set_is_one_line(accepted):
    result = accepted({f"{i}.jpg": "x" for i in range(40)} | {f"{STEM}.py": "x"})
    assert len(result.refused) == 1 and result.refused[0].reason.startswith("40 files like ")


def stored(**entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for path, content in entries.items():
            archive.writestr(path.replace("__", "/"), content)
    return stream.getvalue()


def repacked():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 100_000)
    return stream.getvalue()


def claiming(signature_offset, size):
    """A checkpoint whose directory says something else of its first entry than is there."""
    raw = bytearray(stored(**{"a__data.pkl": "x" * 50, "a__data__0": "y" * 500}))
    struct.pack_into("<H" if size < 100 else "<L", raw, raw.index(b"PK\x01\x02") + signature_offset, size)
    return bytes(raw)


def doubled():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a/data.pkl", b"x")
        archive.writestr("a/data/0", b"x")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a/data/0", b"x")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda: weights(legacy=True), "old format"),
        (lambda: b"\x89HDF\r\n\x1a\n...", "HDF5"),
        (lambda: b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        (lambda: b"just some text", "text file"),
        (lambda: b"\x00\x01\x02", "not a checkpoint"),
        (lambda: weights()[:-30], "damaged"),
        (lambda: stored(model__version="3"), "no data.pkl"),
        (lambda: stored(**{"a__data.pkl": "x", "b__data.pkl": "y"}), "no data.pkl"),
        (repacked, "compressed"),
        (lambda: claiming(24, 5_000), "compressed"),  # its unpacked size
        (lambda: claiming(10, zipfile.ZIP_DEFLATED), "compressed"),  # its method, with equal sizes
        (doubled, "lists a name twice"),
    ],
)
def test_a_checkpoint_is_judged_without_loading_it(accepted, content, words):
    result = accepted({f"{STEM}.pth": content()})
    assert result.checkpoint is None
    assert words in result.refused[0].reason and "model.state_dict()" in result.refused[0].reason


def test_overlapping_entries_of_a_checkpoint_are_refused(accepted):
    """Two entries that share their bytes: together more than the file."""
    raw = bytearray(stored(**{"a__data.pkl": "x" * 50, "a__data__0": b"y" * 5_000}))
    first = raw.index(b"PK\x01\x02")
    record = raw[first : raw.index(b"PK\x01\x02", first + 4)]
    second = bytes(raw[first + len(record) : raw.rindex(b"PK\x05\x06")])
    copy = second.replace(b"a/data/0", b"a/data/1")
    end = bytearray(raw[raw.rindex(b"PK\x05\x06") :])
    end[8:10] = end[10:12] = (3).to_bytes(2, "little")
    end[12:16] = (len(record) + 2 * len(second)).to_bytes(4, "little")
    result = accepted({f"{STEM}.pth": bytes(raw[:first]) + bytes(record) + second + copy + bytes(end)})
    assert result.checkpoint is None and "more than its own size" in result.refused[0].reason


def test_modules_that_the_homework_imports_are_part_of_it(accepted):
    """With the folders before them; a file that nothing imports is set aside."""
    files = {
        f"{STEM}.py": "import helpers\nfrom parts.vit import net\n",
        "helpers.py": "x = 1\n",
        "parts/__init__.py": "",
        "parts/vit.py": "net = 1\n",
        "unused.py": "y = 1\n",
    }
    result = accepted(files, partial=True)
    assert sorted(result.modules) == ["helpers.py", "parts/vit.py"]
    assert result.modules["parts/vit.py"].read_text() == "net = 1\n"
    assert [file.name for file in result.refused] == ["unused.py"]


def test_the_homework_is_the_file_that_no_other_imports(accepted):
    """Where no name says which it is."""
    result = accepted({"a_model.py": "x = 1\n", "train.py": "from a_model import x\n"}, partial=True)
    assert name(result.code) == "train.py" and list(result.modules) == ["a_model.py"]
    assert result.refused == ()


def test_the_asked_name_decides_before_imports(accepted):
    result = accepted({f"{STEM}.py": "x = 1\n", "train.py": f"exec('import {STEM}')\n"}, partial=True)
    assert name(result.code) == f"{STEM}.py" and result.modules == {}


def test_modules_have_a_bound_together(accepted, monkeypatch):
    monkeypatch.setattr(file_roles, "MOST_BYTES", 30)
    files = {f"{STEM}.py": "import a, b\n", "a.py": "x = 1\n" + "#" * 20, "b.py": "y = 1\n" + "#" * 20}
    result = accepted(files, partial=True)
    assert list(result.modules) == ["a.py"] and [file.name for file in result.refused] == ["b.py"]
