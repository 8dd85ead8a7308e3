"""`grader serve-students`: the table of links, withdrawing, and what it refuses."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest

from tests.student_web.conftest import FIRST, SECOND, THIRD, said


def serve(released, *words, code=0):
    return released.said("serve-students", "--published", released.published, *words, code=code)


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_has_a_link_for_each_released_student(released, site, browse, tmp_path):
    file = tmp_path / "links.csv"
    assert "3 links" in serve(released, "--links", file, "--days", "3", "--name", "127.0.0.1:8766")
    rows = table(file)
    assert [row["student_id"] for row in rows] == [FIRST, SECOND, THIRD] and file.stat().st_mode & 0o077 == 0
    for row in rows:
        client = browse()
        address, _, link = row["link"].rpartition("/enter/")
        assert address == "http://127.0.0.1:8766"
        assert client.get(f"/enter/{link}").status_code == 200 and row["student_id"] in client.get("/").text
    assert "is there already" in serve(released, "--links", file, code=2)
    shown = serve(released, "--list")
    assert shown.count("opened 1 time") == 3

    assert "1 link and all sessions ended" in serve(released, "--withdraw", SECOND)
    assert browse().get(f"/enter/{rows[1]['link'].rpartition('/')[2]}").status_code == 403
    assert browse().get(f"/enter/{rows[0]['link'].rpartition('/')[2]}").status_code == 200
    assert f"{SECOND}  no link" in serve(released, "--list")


def test_links_can_be_made_for_a_few(released, tmp_path):
    file = tmp_path / "links.csv"
    serve(released, "--links", file, "--only", f"{FIRST}, {THIRD}")
    assert [row["student_id"] for row in table(file)] == [FIRST, THIRD]
    refused = serve(released, "--links", tmp_path / "more.csv", "--only", "400109999", code=2)
    assert "Nothing was released to 400109999" in refused and not (tmp_path / "more.csv").exists()


def test_who_is_forgotten_goes_from_the_table(released_alone, tmp_path):
    released = released_alone
    file = tmp_path / "links.csv"
    serve(released, "--links", file)
    said("forget", released.out, SECOND, "--yes", "--course", released.course)
    assert SECOND not in file.read_text("utf-8") and FIRST in file.read_text("utf-8")
    for path in released.out.rglob("*"):
        if path.is_file():
            assert SECOND.encode() not in path.read_bytes(), path
    assert not (released.published / "students" / SECOND).exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--host", "0.0.0.0"), "only with --tls-cert"),
        (("--proxy", "10.0.0.5"), "Give the host name"),
        (("--withdraw", "400109999"), "Nobody called"),
        (("--only", FIRST), "add --links"),
    ],
)
def test_what_is_refused_is_told(released, words, told):
    refused = serve(released, *words, code=2)
    assert told in refused and "Traceback" not in refused


def test_another_folder_is_refused(released, tmp_path):
    words = ("serve-students", "--published", tmp_path)
    assert "is not a published folder" in released.said(*words, code=2)
    other = released.published / "instructors" / "pages.json"
    other.write_text(re.sub(r'"book": ?"[^"]+"', '"book": "x"', other.read_text("utf-8")), "utf-8")
    assert "published from another gradebook" in serve(released, "--port", "0", code=2)


def test_the_console_and_the_students_do_not_share_a_name(released):
    from grader.cli.command_options import now
    from grader.web.access import Access

    Access(released.out, now).note_address("https://marks.example.org")
    words = ("--proxy", "127.0.0.1", "--name", "marks.example.org", "--port", "0")
    assert "another --name" in serve(released, *words, code=2)


@pytest.mark.slow
def test_it_serves_until_it_is_stopped(released, tmp_path):
    command = [
        sys.executable,
        "-m",
        "grader",
        "serve-students",
        released.out,
        "--published",
        released.published,
    ]
    process = subprocess.Popen(
        [*command, "--port", "0", "--course", released.course],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        line = process.stdout.readline()
        address = re.search(r"http://\S+", line)[0]
        serve(released, "--links", tmp_path / "links.csv")
        link = table(tmp_path / "links.csv")[0]["link"]
        assert link.startswith(f"{address}/enter/")
        with urlopen(link) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        process.communicate(timeout=20)
        assert time.monotonic() - begin < 15 and process.returncode == 0
