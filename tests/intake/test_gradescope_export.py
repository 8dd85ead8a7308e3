"""A Gradescope export is gathered by its metadata, which students' strings do not turn against anybody."""

from grader.intake import submissions


def test_a_hostile_id_becomes_a_safe_one(folder, assignment, tmp_path):
    text = 'submission_1:\n  :submitters:\n  - :sid: "../../../etc\\u202e\\0x"\n'
    root = folder({"submission_metadata.yml": text, "submission_1/homework.py": "x"})
    (one,) = submissions(root, assignment, tmp_path / "scratch").submissions
    assert one.student_id.replace("_", "").isalnum() and one.student_id.isascii()


def test_an_unreadable_list_is_told_and_the_folders_are_taken_by_their_names(folder, assignment, tmp_path):
    root = folder(
        {
            "submission_metadata.yml": "a: [",
            "submission_1/400101204_Lab8_Homework.py": "x",
            "submission_22222222/homework.py": "x",
        }
    )
    uploads = submissions(root, assignment, tmp_path / "scratch")
    # the number of a submission is not taken for a student's
    assert [one.student_id for one in uploads.submissions] == ["400101204", "submission_22222222"]
    assert ["is not the list" in file.reason for file in uploads.unmatched] == [True]
    assert all(one.received_at is None for one in uploads.submissions)


def test_a_section_of_one_submission_is_an_export_of_its_own(folder, assignment, tmp_path):
    listed = "submission_{0}:\n  :submitters:\n  - :sid: '40010120{0}'\n"
    sections = {"A": (1, 2), "B": (3,)}
    files = {f"{name}/submission_{n}/hw.py": str(n) for name, all_n in sections.items() for n in all_n}
    files |= {
        f"{name}/submission_metadata.yml": "".join(map(listed.format, all_n))
        for name, all_n in sections.items()
    }
    uploads = submissions(folder(files), assignment, tmp_path / "scratch")
    assert [one.student_id for one in uploads.submissions] == ["400101201", "400101202", "400101203"]
