"""Who reads what on the students' pages: each the own pages as they were released, and nothing else."""

import json
import re
import shutil
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from grader.student_web.student_links import FOLDER
from grader.student_web.student_site import student_application
from grader.web.access import Access, StaffRole
from grader.web.listening import Listening
from tests.student_web.conftest import FIRST, OWN, PORT, SCRIPT, SECOND, THIRD, site_of, token

PAGES = ("/", "/mine/report.html", "/mine/submission.html", "/mine/answers.html", "/mine/answers.pdf")
REFUSED = "This link opens nothing."


def test_a_student_reads_the_own_pages_as_they_were_released(come, released):
    student = come(FIRST)
    first = student.get("/").text
    assert FIRST in first and SECOND not in first
    for name in re.findall(r'href="/mine/([^"]+)"', first):
        answer = student.get(f"/mine/{name}")
        assert answer.content == (released.published / "students" / FIRST / name).read_bytes()
        assert SECOND not in answer.text
    assert {"/mine/report.html", "/mine/answers.pdf"} <= set(re.findall(r'href="(/mine/[^"]+)"', first))


def test_what_was_not_released_is_not_shown(come, released):
    """Neither a newer mark, nor a page that somebody changed by hand."""
    student = come(FIRST)
    before = student.get("/mine/report.html").text
    released.said("marks set", FIRST, "q6", "3", "--why", "Found it.", by="ta1")
    assert student.get("/mine/report.html").text == before and "Found it." not in student.get("/").text
    released.publish()
    assert "Found it." in student.get("/mine/report.html").text
    page = released.published / "students" / FIRST / "report.html"
    page.write_text(before + "<p>forged</p>", "utf-8")
    answer = student.get("/mine/report.html")
    assert answer.status_code == 404 and "forged" not in answer.text


def test_nothing_is_answered_without_a_session(browse):
    client = browse()
    for page in PAGES:
        answer = client.get(page)
        assert answer.status_code == 401 and "not signed in" in answer.text, page
    assert client.post("/requests", data={"item": "q6"}).status_code == 401


def test_a_link_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(site, browse):
    client = browse()
    link = token(site, FIRST)
    answer = client.get(f"/enter/{link}")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    assert cookie.startswith(f"grader-student-{PORT}=") and link not in cookie and link not in answer.text
    assert answer.headers["referrer-policy"] == "no-referrer" and FIRST not in answer.text


def test_behind_tls_the_cookie_is_bound_to_the_host(released, clock):
    listening = Listening(names=("grades.example.org",), proxies=("10.0.0.5",))
    site = site_of(released, clock, listening=listening)
    client = TestClient(
        student_application(site), base_url="https://grades.example.org", client=("10.0.0.5", 1)
    )
    cookie = client.get(f"/enter/{token(site, FIRST)}").headers["set-cookie"]
    assert cookie.startswith("__Host-grader-student=") and "Secure" in cookie
    assert client.get("/").status_code == 200
    other = TestClient(
        student_application(site), base_url="https://grades.example.org", client=("10.0.0.6", 1)
    )
    assert other.get("/").status_code == 403


def refusals(site, clock):
    """Links that open nothing, by why."""
    good = token(site, FIRST)
    name, _, signature = good.partition(".")
    second = token(site, SECOND)
    yield "guessed", "a" * 24 + "." + "b" * 64
    yield "nothing", "x"
    yield "not ASCII", "é.ü"
    yield "unsigned", name
    yield "changed", f"{name}.{signature[:-1]}{'0' if signature[-1] != '0' else '1'}"
    yield "of another's signature", f"{name}.{second.partition('.')[2]}"
    yield "cut", good[:-1]
    gone = token(site, THIRD)
    site.access.withdraw(THIRD)
    yield "withdrawn", gone
    short = site.access.new_links([FIRST], timedelta(days=1))[FIRST]
    clock.moved = timedelta(days=1, seconds=1)
    yield "expired", short
    site.access.withdraw(SECOND)
    yield "withdrawn later", second


def test_links_that_are_not_good_open_nothing_and_say_nothing(site, browse, clock):
    pages = set()
    for why, link in refusals(site, clock):
        client = browse()
        answer = client.get(f"/enter/{link}")
        assert answer.status_code == 403 and REFUSED in answer.text, why
        assert "set-cookie" not in answer.headers and client.get("/").status_code == 401, why
        pages.add(answer.text)
    assert len(pages) == 1, "the page tells them apart"
    assert not any(student in pages.pop() for student in (FIRST,))


def test_a_link_of_somebody_to_whom_nothing_was_released_opens_nothing(site, browse):
    link = site.access.new_links(["400109999"])["400109999"]
    assert browse().get(f"/enter/{link}").status_code == 403


@pytest.mark.parametrize("how", ["withdrawn", "expired", "removed"])
def test_a_session_ends_with_its_link_and_with_the_report(site, come, clock, released, how):
    student = come(FIRST)
    other = come(SECOND)
    assert student.get("/").status_code == 200
    if how == "withdrawn":
        site.access.withdraw(FIRST)
    elif how == "expired":
        clock.moved = timedelta(days=31)
    else:
        manifest = released.published / "instructors" / "pages.json"
        document = json.loads(manifest.read_text("utf-8"))
        document["pages"] = {path: one for path, one in document["pages"].items() if FIRST not in path}
        manifest.write_text(json.dumps(document), "utf-8")
    for page in PAGES:
        assert student.get(page).status_code == 401, page
    assert other.get("/").status_code == (401 if how == "expired" else 200)


def test_another_students_pages_are_nowhere(come, released):
    """Whatever is put into the address or the form: whose page it is follows from the session alone."""
    student = come(FIRST)
    secret = released.published / "secret.txt"
    secret.write_text("secret", "utf-8")
    addresses = [
        f"/mine/../{SECOND}/report.html",
        f"/mine/..%2f{SECOND}%2freport.html",
        f"/mine/%2e%2e%2f{SECOND}%2freport.html",
        f"/mine/..%5c{SECOND}%5creport.html",
        "/mine/..%2f..%2fsecret.txt",
        "/mine/..%2f..%2finstructors%2fpages.json",
        "/mine/..%2f..%2finstructors%2findex.html",
        "/mine/%2fetc%2fpasswd",
        "/mine/pages.json",
        "/mine/report.html%00",
        f"/students/{SECOND}/report.html",
        f"/mine/report.html/../../{SECOND}/report.html",
        "/instructors/index.html",
    ]
    for address in addresses:
        answer = student.get(address)
        assert answer.status_code == 404 and SECOND not in answer.text and "secret" not in answer.text, (
            address
        )
    assert SECOND not in student.get(f"/mine/report.html?student={SECOND}&student_id={SECOND}").text
    assert student.ask("q6", "Mine.", student_id=SECOND, student=SECOND).status_code == 303
    assert FIRST in released.said("requests list") and SECOND not in released.said("requests list")


def test_a_symbolic_link_in_the_folder_leads_nowhere(come, released):
    page = released.published / "students" / FIRST / "report.html"
    page.unlink()
    page.symlink_to(released.published / "students" / SECOND / "report.html")
    assert come(FIRST).get("/mine/report.html").status_code == 404


def test_nothing_runs_on_any_page(come):
    student = come(SECOND)
    for page in PAGES:
        answer = student.get(page)
        policy = dict(
            part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";")
        )
        assert answer.status_code == 200 and policy["default-src"] == "'none'", page
        assert "script-src" not in policy and policy["frame-ancestors"] == "'none'", page
        assert "'unsafe-inline'" not in policy.get("style-src", ""), page
        assert answer.headers["referrer-policy"] == "no-referrer", page
        assert answer.headers["cache-control"] == "no-store", page
        if not page.endswith(".pdf"):
            assert "<script" not in answer.text and SCRIPT not in answer.text, page
        if page.startswith("/mine"):
            assert "sandbox" in policy and "allow-scripts" not in policy["sandbox"], page


def test_a_style_of_a_students_text_would_not_be_allowed(site):
    """Even if it were not escaped: only the head's own is."""
    from grader.student_web.student_site import report_policy

    head = b"<html><head><style>a{}</style></head>"
    assert report_policy(head) == report_policy(head + b"<style>b{}</style></head><style>c{}</style>")
    assert report_policy(b"<style>b{}</style>").count("sha256") == 0


def test_forms_must_come_from_the_own_pages(come, released):
    student = come(FIRST)
    data = {"csrf": student.csrf, "item": "q6", "reason": "Mine."}
    foreign = [
        {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-site"},  # the console's
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "null", "Sec-Fetch-Site": ""},
    ]
    for headers in foreign:
        assert student.client.post("/requests", data=data, headers=headers).status_code == 403, headers
    for csrf in ("", "x", come(SECOND).csrf):
        assert student.client.post("/requests", data={**data, "csrf": csrf}).status_code == 403
    assert "No request is open." in released.said("requests list")
    assert student.client.post("/requests", data=data, headers=OWN).status_code == 303


def test_two_processes_share_nothing(released, site, clock, browse):
    """A console's link and cookie open nothing here, and a student's nothing there."""
    console = Access(released.out, clock)
    staff = console.invite("ta1", StaffRole.INSTRUCTOR)
    secret, _ = console.exchanged(console.invite("ta2", StaffRole.INSTRUCTOR))
    client = browse()
    assert client.get(f"/enter/{staff}").status_code == 403
    for name in (site.cookie, f"grader-{PORT}", "__Host-grader"):
        client.cookies.set(name, secret)
    assert client.get("/").status_code == 401
    own, _ = site.access.exchanged(token(site, FIRST), [FIRST])
    assert console.session(own) is None
    with pytest.raises(Exception, match="opens nothing"):
        console.exchanged(token(site, FIRST))
    keys = {
        json.loads((released.out / folder / name).read_text("utf-8"))["key"]
        for folder, name in (("console", "access.json"), (FOLDER, "links.json"))
    }
    assert len(keys) == 2
    paths = {route.path for route in student_application(site).app.routes}
    of_a_student = {"/", "/mine/{name}", "/requests", "/answers"}
    assert paths == {"/enter/{token}", "/style/{digest}.css", "/leave", *of_a_student}


def test_the_file_of_links_names_nobody(site, come, released):
    come(FIRST)
    content = (released.out / FOLDER / "links.json").read_text("utf-8")
    assert FIRST not in content
    assert (released.out / FOLDER / "links.json").stat().st_mode & 0o077 == 0
    assert (released.out / FOLDER).stat().st_mode & 0o077 == 0


def test_guessing_is_slowed(site, browse):
    client = browse()
    answers = [client.get(f"/enter/{'0' * 24}.{number:064}").status_code for number in range(40)]
    assert answers[0] == 403 and answers[-1] == 429
    assert browse(client=("10.1.1.1", 5)).get(f"/enter/{token(site, FIRST)}").status_code == 200


def test_requests_are_slowed(come):
    student = come(FIRST)
    csrf = student.csrf
    answers = [
        student.client.post("/requests", data={"csrf": csrf, "item": "nothing", "reason": "x"}).status_code
        for _ in range(11)
    ]
    assert answers == [422] * 10 + [429]


def test_reading_is_slowed(site, come):
    student = come(FIRST)
    site.read.most = 3
    assert [student.get("/mine/report.html").status_code for _ in range(4)] == [200, 200, 200, 429]
    assert come(SECOND).get("/mine/report.html").status_code == 200


def test_signing_out_ends_the_session(come):
    student = come(FIRST)
    cookies = dict(student.client.cookies)
    assert student.client.post("/leave", data={"csrf": student.csrf}).status_code == 200
    student.client.cookies.update(cookies)
    assert student.get("/").status_code == 401


def test_other_names_are_not_answered(site):
    client = TestClient(student_application(site), base_url="http://evil.example")
    refused = client.get("/")
    assert refused.status_code == 421 and refused.text == "These pages are not known under this name.\n"


def test_only_its_proxy_may_connect(released, clock):
    listening = Listening(port=PORT, names=("grades.example.org",), proxies=("192.0.2.7",))
    application = student_application(site_of(released, clock, listening=listening))
    refused = TestClient(application, base_url="https://grades.example.org").get("/")
    assert refused.status_code == 403 and refused.text == "These pages are reached through a proxy only.\n"


def test_faults_are_told_to_whoever_serves_and_not_to_students(come, released, caplog):
    student = come(FIRST)
    shutil.rmtree(released.course)
    first = student.get("/")
    assert first.status_code == 200 and "cannot be shown" in first.text
    assert str(released.course) not in first.text and str(released.course) in caplog.text
    assert student.get("/mine/report.html").status_code == 200
    (released.published / "instructors" / "pages.json").unlink()
    answer = student.get("/mine/report.html")
    assert answer.status_code == 503 and str(released.published) not in answer.text
