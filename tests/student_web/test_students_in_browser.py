"""Students in Chromium: one asks and reads the answer; what a student wrote does nothing to anybody."""

from datetime import timedelta
from hashlib import sha256

import pytest

from grader.student_web.student_site import student_application
from tests.student_web.conftest import FIRST, SECOND, THIRD, listening_at, site_of, token

pytestmark = pytest.mark.browser


@pytest.fixture
def served(released, clock):
    """The students' pages in a thread: (the site, its address)."""
    sites = []

    def made(port):
        sites.append(site_of(released, clock, port))
        return student_application(sites[0])

    with listening_at(made) as address:
        yield sites[0], address


@pytest.fixture
def tab(browser):
    """`tab(own)`: a new browser's tab; whatever it asks for that is not of these origins is noted."""
    contexts = []

    def opened(*own, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.complaints = []

        def allowed(route):
            if route.request.url.startswith((*own, "data:")):
                return route.continue_()
            page.complaints.append(route.request.url)
            return route.abort()

        context.route("**/*", allowed)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on(
            "console",
            lambda message: page.complaints.append(message.text) if "Security" in message.text else None,
        )
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def staff():
    """Another origin on this machine, as a console is: (its address, what was asked there)."""
    reached = []

    async def app(scope, receive, send):
        reached.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"staff"})

    with listening_at(lambda port: app) as address:
        yield address, reached


def come_in(page):
    """Wait for the first page, to which a link leads by itself."""
    page.get_by_role("button", name="Sign out").wait_for()


def test_a_student_comes_from_a_mail_asks_and_reads_the_answer(tab, served, released):
    site, address = served
    page = tab(address)
    link = f"{address}/enter/{token(site, FIRST)}"
    page.context.route(
        "http://mail.example/*",
        lambda route: route.fulfill(content_type="text/html", body=f'<a href="{link}">Your report</a>'),
    )
    page.goto("http://mail.example/inbox")
    page.get_by_role("link", name="Your report").click()
    come_in(page)  # the cookie was sent although another site led here
    assert page.url == f"{address}/", "the link is not in the address any more"
    page.get_by_role("link", name="Your report").click()
    page.wait_for_url("**/mine/report.html")
    assert FIRST in page.content()
    share = page.locator("[style]").first
    assert share.count() and share.evaluate("one => one.style.length") > 0, "styles of the report's own"
    code = page.locator('a[href^="submission.html"]').first
    code.click()
    page.wait_for_url("**/mine/submission.html*")  # the cookie is sent from within a report, too
    assert FIRST in page.content() and page.get_by_text("not signed in").count() == 0
    page.goto(f"{address}/mine/answers.html")
    with page.expect_download() as download:
        page.locator('a[href="answers.pdf"]').first.click()
    assert download.value.path().read_bytes() == b"%PDF-1.4 " + FIRST.encode()
    page.goto(f"{address}/")
    page.get_by_label("Item").select_option("q6")
    page.get_by_label("What was overlooked or misread?").fill("Part b is on page 4.")
    page.get_by_role("button", name="Ask").click()
    page.get_by_text("There is no answer yet.").wait_for()
    assert page.url == f"{address}/#requests"

    released.said("requests answer", FIRST, "q6", "3.5", "--why", "It is there.", by="ta1")
    released.publish()
    page.reload()
    page.get_by_text("It is there.").wait_for()
    page.get_by_role("link", name="Your report").click()
    page.get_by_text("It is there.").first.wait_for()
    page.goto(f"{address}/")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("You are signed out").wait_for()
    page.goto(f"{address}/mine/report.html")
    page.get_by_text("You are not signed in").wait_for()
    assert page.complaints == []


def test_a_student_is_asked_about_a_line_and_answers(tab, served, released, objections):
    released.said("inquiries ask", FIRST, "similar", "--line", "homework.py:1")
    released.publish()
    site, address = served
    page = tab(address)
    page.goto(f"{address}/enter/{token(site, FIRST)}")
    come_in(page)
    asked = page.locator("#questions article")
    assert "x = 1" in asked.inner_text() and "How did you come to it" in asked.inner_text()
    assert objections(page) == []
    page.get_by_label("Your answer").fill("I wrote it with the tutorial of week 3.")
    page.get_by_role("button", name="Answer question 1").click()
    page.get_by_text("You answered on").wait_for()
    assert page.url == f"{address}/#questions"
    assert "tutorial of week 3" in released.said("inquiries list", "--open")
    released.said("inquiries settle", FIRST, "1", "dismissed", "--why", "The tutorial has it.")
    released.publish()
    page.reload()
    page.get_by_text("The tutorial has it.").wait_for()
    assert page.locator("#questions form").count() == 0
    assert objections(page) == []
    page.get_by_role("link", name="Your report").click()
    page.get_by_text("The tutorial has it.").wait_for()
    assert page.complaints == []


def test_a_link_opens_nothing_of_another_and_bad_ones_open_nothing(tab, served, clock):
    site, address = served
    page = tab(address)
    page.goto(f"{address}/enter/{token(site, SECOND)}")
    come_in(page)
    for path in (f"mine/..%2f{FIRST}%2freport.html", f"students/{FIRST}/report.html"):
        assert page.goto(f"{address}/{path}").status == 404 and FIRST not in page.content()
    page.goto(f"{address}/mine/report.html")
    assert SECOND in page.content() and FIRST not in page.content()
    good, withdrawn = token(site, FIRST), token(site, THIRD)
    site.access.withdraw(THIRD)
    short = site.access.new_links([FIRST], timedelta(hours=1))[FIRST]
    clock.moved = timedelta(hours=2)
    told = set()
    for link in ("a" * 24 + "." + "b" * 64, good[:-2] + "xx", withdrawn, short):
        stranger = tab(address)
        assert stranger.goto(f"{address}/enter/{link}").status == 403
        told.add(stranger.content())
        assert stranger.goto(f"{address}/mine/report.html").status == 401
        assert stranger.context.cookies() == []
    assert len(told) == 1, "they are not told apart"


def test_what_a_student_wrote_reaches_nobody(tab, served, staff):
    """Neither as it is, escaped, nor if a report had it unescaped."""
    site, address = served
    staff_address, reached = staff
    page = tab(address, staff_address)
    page.goto(f"{address}/enter/{token(site, SECOND)}")
    come_in(page)
    for name in ("report.html", "submission.html", "answers.html"):
        page.goto(f"{address}/mine/{name}")
        assert page.title() != "run" and page.locator("script").count() == 0, name
    assert page.complaints == []

    attack = (
        "<script>document.title='run'; fetch('STAFF/fetched')</script>"
        "<img src='STAFF/picture' onerror=\"document.title='run'\">"
        "<style>body { background: url(STAFF/style) }</style>"
        "<iframe src='STAFF/frame'></iframe><link rel=stylesheet href='STAFF/sheet'>"
        "<form action='STAFF/form' method=post><button id=send>x</button></form>"
    ).replace("STAFF", staff_address)
    report = site.pages.content(SECOND, "report.html").replace(b"</main>", attack.encode() + b"</main>")
    _replace(site, report)
    page.context.add_cookies([{"name": "grader-staff", "value": "secret", "url": staff_address}])
    page.goto(f"{address}/mine/report.html")
    page.locator("#send").click()
    page.wait_for_timeout(500)
    assert page.title() != "run" and page.url == f"{address}/mine/report.html"
    assert page.evaluate("getComputedStyle(document.body).backgroundImage") == "none"
    assert reached == []
    assert page.complaints, "the browser says what it refused"
    page.goto(f"{staff_address}/by-hand")
    assert reached == ["/by-hand"], "it would have been noticed"


def _replace(site, report):
    """Release a page that the grader did not make."""
    folder = site.pages.folder
    (folder / "students" / SECOND / "report.html").write_bytes(report)
    manifest = site.pages.manifest()
    path = f"students/{SECOND}/report.html"
    record = manifest.pages[path].model_copy(update={"digest": sha256(report).hexdigest()})
    changed = manifest.model_copy(update={"pages": {**manifest.pages, path: record}})
    (folder / "instructors" / "pages.json").write_text(changed.model_dump_json(), "utf-8")


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_axe_objects_to_nothing(tab, served, objections, width, scheme):
    site, address = served
    page = tab(address, width=width, scheme=scheme)
    page.goto(f"{address}/enter/{token(site, FIRST)}")
    come_in(page)
    assert objections(page) == []
    page.goto(f"{address}/enter/x")
    assert objections(page) == []
