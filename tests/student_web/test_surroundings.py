"""The students' pages with a certificate of their own, with PostgreSQL, and with a class of three hundred."""

import csv
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from grader.domain.edit import InquiryExplained, RegradeAsked
from grader.gradebook import Gradebook
from grader.student_web.student_site import student_application
from tests.student_web.conftest import FIRST, OWN, SECOND, THIRD, Student, release, said, site_of, token

OTHERS = tuple(f"4001{number:05}" for number in range(100))


# --- TLS -------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path, lacking):
    """A self-signed certificate for localhost, and its key."""
    openssl = shutil.which("openssl") or lacking("openssl")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    made = [openssl, *words.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    return cert, key


class _Browser:
    """A client that keeps its cookie, and trusts one certificate; None: those that machines trust."""

    def __init__(self, port, cert):
        trusted = ssl.create_default_context(cafile=str(cert) if cert else None)
        self._connect = lambda: HTTPSConnection("localhost", port, context=trusted, timeout=20)
        self.cookie = self.attributes = ""

    def ask(self, method, path, **fields):
        """(status, headers, text) of an answer."""
        connection = self._connect()
        headers = {"Cookie": self.cookie} if self.cookie else {}
        if fields:
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        connection.request(method, path, urlencode(fields) or None, headers)
        answer = connection.getresponse()
        content = answer.read().decode("utf-8")
        if found := answer.getheader("Set-Cookie"):
            self.cookie, _, self.attributes = found.partition(";")
        connection.close()
        return answer.status, answer.headers, content


@pytest.fixture
def encrypted(released, certificate):
    """`grader serve-students` as a process with a certificate: (its port, the options of the command)."""
    cert, key = certificate
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--published", released.published, "--port", port, "--name", f"localhost:{port}"]
    options += ["--tls-cert", cert, "--tls-key", key, "--course", released.course]
    process = subprocess.Popen(
        list(map(str, (sys.executable, "-m", "grader", "serve-students", released.out, *options))),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert f"https://localhost:{port}" in process.stdout.readline()
        yield port, options
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.slow
def test_with_a_certificate_of_its_own(released, encrypted, certificate, tmp_path):
    port, options = encrypted
    links = tmp_path / "links.csv"
    said("serve-students", released.out, *options, "--links", links)
    with links.open(encoding="utf-8", newline="") as file:
        link = next(csv.DictReader(file))["link"]
    assert link.startswith(f"https://localhost:{port}/enter/")
    browser = _Browser(port, certificate[0])
    status, headers, _ = browser.ask("GET", f"/enter/{link.rpartition('/')[2]}")
    assert status == 200 and "max-age" in headers["Strict-Transport-Security"]
    assert browser.cookie.startswith("__Host-grader-student=")
    assert {"Secure", "HttpOnly", "Path=/"} <= {part.strip() for part in browser.attributes.split(";")}
    status, _, page = browser.ask("GET", "/")
    assert status == 200 and FIRST in page
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    assert browser.ask("POST", "/requests", csrf=csrf, item="q6", reason="Part b.")[0] == 303
    assert "Part b." in browser.ask("GET", "/")[2] and browser.ask("GET", "/mine/report.html")[0] == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        _Browser(port, None).ask("GET", "/")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"Student" not in plain.recv(1000), "nothing in the clear"


# --- PostgreSQL ------------------------------------------------------------------------------------------


@pytest.mark.service
def test_with_a_gradebook_in_postgresql(
    tmp_path, course_root, assignment, class_evidence, new_database, clock
):
    """Students ask and answer while staff decides; what two send at the same moment is taken once each."""
    released = release(tmp_path, course_root, assignment, class_evidence, url=new_database())
    assert not (released.out / "gradebook.sqlite").exists()
    for student in (FIRST, SECOND):
        released.said("inquiries ask", student, "code", "--line", "homework.py:1")
    released.publish()
    site = site_of(released, clock)

    def came(student):
        client = TestClient(
            student_application(site), base_url="http://127.0.0.1:8766", headers=OWN, follow_redirects=False
        )
        assert client.get(f"/enter/{token(site, student)}").status_code == 200
        return Student(client)

    students = {student: came(student) for student in (FIRST, SECOND, THIRD)}
    with ThreadPoolExecutor(6) as threads:
        sent = [threads.submit(one.ask, "q6", "Part b is on page 4.") for one in students.values()] * 2
        sent += [threads.submit(answered, students[one], f"I wrote it, {one}.") for one in (FIRST, SECOND)]
        assert {one.result().status_code for one in sent} == {303}
    with Gradebook(released.out, released.url) as book:
        edits = book.edits()
    asked = [edit.student_id for edit in edits if isinstance(edit, RegradeAsked)]
    assert sorted(asked) == [FIRST, SECOND, THIRD]
    assert {edit.student_id: edit.why for edit in edits if isinstance(edit, InquiryExplained)} == {
        one: f"I wrote it, {one}." for one in (FIRST, SECOND)
    }
    released.said("requests answer", FIRST, "q6", "3.5", "--why", "It is there.", by="ta1")
    released.said("inquiries settle", FIRST, "1", "dismissed", "--why", "The handout has it.")
    released.publish()
    page = students[FIRST].get("/").text
    assert "It is there." in page and "The handout has it." in page
    assert "The handout has it." not in students[SECOND].get("/").text


def answered(student, words):
    """Answer the first question."""
    return student.client.post("/answers", data={"csrf": student.csrf, "question": "1", "answer": words})


# --- a large class ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_class(tmp_path, course_root, assignment, class_evidence, clock):
    """All come within a few minutes, read the own report, and a few ask: nobody sees another's."""
    released = release(tmp_path, course_root, assignment, class_evidence, others=OTHERS)
    site = site_of(released, clock)
    assert len(site.pages.students()) == 103
    links = site.access.new_links(site.pages.students())

    def visited(student):
        client = TestClient(
            student_application(site), base_url="http://127.0.0.1:8766", headers=OWN, follow_redirects=False
        )
        entered = client.get(f"/enter/{links[student]}")
        if entered.status_code != 200:
            return student, [entered.status_code], ""
        report, first = client.get("/mine/report.html"), client.get("/")
        codes = [report.status_code, first.status_code]
        if student.endswith("37"):
            one = Student(client)
            codes.append(one.ask("training", f"The seed, says {student}.").status_code)
        client.close()
        return student, codes, report.text + first.text

    begin = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        visits = list(threads.map(visited, links))
    seconds = time.monotonic() - begin
    everybody = set(links)
    for student, codes, pages in visits:
        assert set(codes) <= {200, 303}, (student, codes)
        assert everybody & set(re.findall(r"\b4001\d{5}\b", pages)) == {student}
    asking = {student for student in links if student.endswith("37")}
    with Gradebook(released.out) as book:
        asked = [edit for edit in book.edits() if isinstance(edit, RegradeAsked)]
    assert {edit.student_id for edit in asked} == asking and len(asked) == len(asking)
    assert seconds < 240, f"{seconds:.0f} s for {len(links)} students"
