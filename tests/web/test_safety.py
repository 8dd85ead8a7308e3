"""What stands before every page: names, peers, forms from elsewhere, headers, tries, and where it listens."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import grader
from grader.cli import cli
from grader.domain.errors import UsageError
from grader.marking.audit_log import audit_log
from grader.web import static_files as files
from grader.web.access import SESSION_LASTS, StaffRole
from grader.web.application import application
from grader.web.listening import Listening
from grader.web.safety import Attempts

ROOT = Path(__file__).parents[2]
HTMX_DIGEST = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
FOR_EVERYBODY = {"/enter/{token}", "/leave", "/static/{digest}/{name}"}
FOR_MARKERS = (
    "/",
    "/next",
    "/statistics",
    "/questions/",
    "/submissions/",
)  # and what is below; all else: heads
OWN = {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}


def addresses(console, method):
    """(Route, an address of it) of all that the application answers by a method."""
    return [
        (route.path, re.sub(r"\{\w+\}", "q6", route.path))
        for route in application(console).app.routes
        if method in route.methods and route.path not in FOR_EVERYBODY
    ]


def assert_nothing_opens(console, client):
    pages, deeds = addresses(console, "GET"), addresses(console, "POST")
    assert len(pages) > 20 and len(deeds) > 15
    for _, address in pages:
        answer = client.get(address)
        assert answer.status_code == 401 and "not signed in" in answer.text, address
    for _, address in deeds:
        assert client.post(address, headers=OWN).status_code == 401, address


def test_nothing_is_answered_without_a_session(console, browse):
    assert_nothing_opens(console, browse())


def test_guessed_changed_expired_and_withdrawn_links_open_no_page(console, browse, clock):
    def link(person):
        return console.access.invite(person, StaffRole.INSTRUCTOR)

    name, _, signature = link("ta1").partition(".")
    other, withdrawn, expired = link("ta2"), link("ta3"), link("ta4")
    once = console.access.invite("ta5", StaffRole.HEAD, once=True)
    assert browse().get(f"/enter/{once}").status_code == 303
    console.access.withdraw("ta3")
    changed = [f"{name}.{signature[::-1]}", f"{other.partition('.')[0]}.{signature}", name, f"{name}."]
    for number, token in enumerate([*changed, "guessed", withdrawn, once, expired]):
        console.attempts.forgive("testclient")
        if token == expired:
            clock.moved = timedelta(days=15)
        client = browse()
        answer = client.get(f"/enter/{token}")
        assert answer.status_code in (403, 404) and "set-cookie" not in answer.headers, number
    assert_nothing_opens(console, client)


def test_withdrawn_and_expired_sessions_open_no_page(console, browse, clock):
    withdrawn, expired = browse(), browse()
    assert withdrawn.get(f"/enter/{console.access.invite('ta1', StaffRole.HEAD)}").status_code == 303
    assert expired.get(f"/enter/{console.access.invite('ta2', StaffRole.HEAD)}").status_code == 303
    assert withdrawn.get("/queue").status_code == expired.get("/queue").status_code == 200
    console.access.withdraw("ta1")
    assert_nothing_opens(console, withdrawn)
    clock.moved = SESSION_LASTS
    assert_nothing_opens(console, expired)


def test_markers_get_no_page_of_heads_and_change_nothing_there(console, come):
    ta = come("ta1")
    for method in ("GET", "POST"):
        for route, address in addresses(console, method):
            mine = route in FOR_MARKERS or route.startswith(FOR_MARKERS[-2:])
            answer = ta.get(address) if method == "GET" else ta.post(address)
            assert (answer.status_code == 403) == (not mine), address


def test_a_link_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(console, browse):
    client = browse()
    token = console.access.invite("ta1", StaffRole.MARKER)
    answer = client.get(f"/enter/{token}")
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Path=/" in cookie
    assert token not in cookie
    assert client.get("/").status_code == 200
    assert "ta1" in {entry.who for entry in audit_log(console.desk)}


def test_a_withdrawn_person_is_out_at_the_next_page(console, come):
    ta = come("ta1")
    assert ta.get("/").status_code == 200
    console.access.withdraw("ta1")
    assert ta.get("/").status_code == 401


def test_roles_are_kept(come):
    assert come("ta1").get("/log").status_code == 403
    assert come("head", StaffRole.HEAD).get("/log").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-site"},
        {"Origin": "null", "Sec-Fetch-Site": "none"},
        {},
    ],
    ids=str,
)
def test_forms_of_other_pages_change_nothing(come, headers):
    ta = come("ta1")
    for name in OWN:
        del ta.client.headers[name]
    answer = ta.client.post("/questions/q6/unskip", data={"csrf": ta.csrf}, headers=headers)
    assert answer.status_code == 403 and "did not come from" in answer.text
    assert ta.client.post("/leave", headers=headers).status_code == 403


@pytest.mark.parametrize("headers", [OWN, {"Origin": "null", "Sec-Fetch-Site": "same-origin"}], ids=str)
def test_forms_need_the_session_s_token(come, headers):
    ta, other = come("ta1"), come("ta2")
    for token in ("", "x", other.csrf):
        answer = ta.client.post("/questions/q6/unskip", data={"csrf": token}, headers=headers)
        assert answer.status_code == 403 and "earlier session" in answer.text
    assert ta.client.post("/questions/q6/unskip", data={"csrf": ta.csrf}, headers=headers).status_code == 303


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", ""])
def test_another_name_for_this_machine_is_refused(browse, host):
    answer = browse().get("/", headers={"Host": host})
    assert answer.status_code == 421 and answer.text.startswith("The console is not known")


def test_every_answer_has_the_headers(browse, come):
    answers = [browse().get("/"), browse().get("/nowhere"), come("ta1").get("/"), browse().get("/enter/x")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_pages_have_no_script_or_style_within(come):
    ta = come("ta1", StaffRole.HEAD)
    for page in ("/", "/questions/q6", "/log"):
        text = ta.get(page).text
        assert not re.search(r"<style|style=|\son\w+=|javascript:|https?://", text), page
        assert re.findall(r"<script([^>]*)>([^<]*)</script>", text)
        assert all(
            not within and "src=" in how
            for how, within in re.findall(r"<script([^>]*)>([^<]*)</script>", text)
        )


def test_links_are_not_tried_without_end(console, browse):
    client = browse()
    answers = [client.get(f"/enter/{number}").status_code for number in range(12)]
    assert answers == [403] * 10 + [429] * 2
    token = console.access.invite("ta1", StaffRole.MARKER)
    assert client.get(f"/enter/{token}").status_code == 429


def test_behind_a_proxy_one_who_guesses_keeps_nobody_out(console):
    listening = Listening(names=("marks.example.org",), proxies=("10.0.0.5",))
    app = application(replace(console, listening=listening))
    client = TestClient(
        app, base_url="https://marks.example.org", follow_redirects=False, client=("10.0.0.5", 5000)
    )
    assert [client.get(f"/enter/{number}").status_code for number in range(30)] == [403] * 30
    token = console.access.invite("ta1", StaffRole.MARKER)
    assert client.get(f"/enter/{token}").status_code == 303
    assert [client.get("/enter/guess").status_code for _ in range(12)] == [403] * 10 + [429] * 2


def test_tries_are_forgotten_after_a_while():
    now = 0.0
    attempts = Attempts(most=2, most_of_all=3, seconds=10, clock=lambda: now)
    assert [attempts.allowed("a"), attempts.allowed("a"), attempts.allowed("a")] == [True, True, False]
    assert [attempts.allowed("b"), attempts.allowed("b")] == [True, False]
    now = 10.0
    assert attempts.allowed("a")


@pytest.mark.slow
def test_tries_in_several_threads_are_all_counted():
    times = iter(range(10**9))
    attempts = Attempts(most=10**6, most_of_all=2000, seconds=50, clock=lambda: next(times) / 100)

    def try_often(peer):
        for _ in range(2000):
            attempts.allowed(peer)
            attempts.forgive(f"nobody{peer}")

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(try_often, f"peer{number}") for number in range(8)]:
            done.result()  # without a lock: a deque that changes while it is counted


def test_a_form_is_not_endless(come):
    ta = come("ta1")
    assert ta.post("/questions/q6/unskip", text="x" * 300_000).status_code == 413

    def pieces():
        for _ in range(40):
            yield b"x" * 10_000

    assert ta.client.post("/questions/q6/unskip", content=pieces()).status_code in (400, 413)
    many = "&".join("a=b" for _ in range(3000))
    assert ta.client.post("/questions/q6/unskip", content=many).status_code == 400


# --- where it listens ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listening", "sentence"),
    [
        (Listening("0.0.0.0"), "only with --tls-cert"),
        (Listening("192.0.2.7", names=("a.example",)), "only with --tls-cert"),
        (Listening("0.0.0.0", certificate=Path("c"), key=Path("k")), "--name marks"),
        (Listening(certificate=Path("c")), "TLS needs two files"),
        (Listening(user_header="X-Remote-User"), "add --proxy"),
        (Listening(proxies=("nginx",), names=("a",)), "not the address of a machine"),
        (Listening(proxies=("127.0.0.1",)), "--name marks"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_safe_is_refused_in_a_sentence(listening, sentence):
    with pytest.raises(UsageError, match=sentence):
        listening.require_safe()


def test_loopback_tls_and_a_proxy_are_safe():
    Listening().require_safe()
    Listening("::1").require_safe()
    Listening("0.0.0.0", names=("a.example",), certificate=Path("c"), key=Path("k")).require_safe()
    Listening("0.0.0.0", names=("a.example",), proxies=("10.0.0.5",), user_header="X-User").require_safe()


@pytest.fixture
def behind_proxy(console):
    """`behind_proxy(peer)`: a browser behind a proxy at that address."""
    listening = Listening(names=("marks.example.org",), proxies=("10.0.0.5",), user_header="X-Remote-User")
    app = application(replace(console, listening=listening))

    def opened(peer="10.0.0.5"):
        return TestClient(
            app, base_url="https://marks.example.org", follow_redirects=False, client=(peer, 5000)
        )

    return opened


def test_a_proxy_says_who_it_is_and_nobody_else(console, behind_proxy):
    console.access.invite("ta1", StaffRole.MARKER)
    assert behind_proxy().get("/", headers={"X-Remote-User": "ta1"}).status_code == 200
    assert behind_proxy().get("/").status_code == 401
    assert behind_proxy().get("/", headers={"X-Remote-User": "ta2"}).status_code == 401
    twice = [("X-Remote-User", "ta1"), ("X-Remote-User", "ta2")]
    assert behind_proxy().get("/", headers=twice).status_code == 401
    answer = behind_proxy("10.0.0.6").get(
        "/", headers={"X-Remote-User": "ta1", "X-Forwarded-For": "10.0.0.5"}
    )
    assert answer.status_code == 403
    console.access.withdraw("ta1")
    assert behind_proxy().get("/", headers={"X-Remote-User": "ta1"}).status_code == 401


def test_without_a_proxy_its_header_says_nothing(browse, console):
    console.access.invite("ta1", StaffRole.MARKER)
    assert browse().get("/", headers={"X-Remote-User": "ta1"}).status_code == 401


# --- files and command -----------------------------------------------------------------------------------


def test_htmx_is_the_file_that_its_makers_publish_with_its_license():
    folder = ROOT / "grader" / "web" / "static"
    assert sha256((folder / files.HTMX).read_bytes()).hexdigest() == HTMX_DIGEST
    assert "Zero-Clause BSD" in (folder / "htmx-LICENSE.txt").read_text()


def test_scripts_are_few():
    scripts = [file for name, file in files.static_files().items() if name.endswith(".js")]
    assert sum(len(file.content) for file in scripts) < 60_000


def test_static_files_are_found_by_their_digest_only(browse):
    answer = browse().get(files.static_address("console.css"))
    assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/css")
    for address in ("/static/0/console.css", "/static/0/..%2faccess.json", "/static/access.json"):
        assert browse().get(address).status_code == 404


def test_links_are_made_and_withdrawn_by_the_command(desk):
    def run(*words):
        return CliRunner().invoke(cli, ["serve", str(desk.out), *words])

    made = run("--invite", "ta1", "--role", "head")
    assert made.exit_code == 0 and re.search(r"http://127\.0\.0\.1:8765/enter/\S+", made.output)
    assert "ta1  head  until" in run("--people").output
    assert "1 link and all sessions ended" in run("--withdraw", "ta1").output
    refused = run("--withdraw", "ta1", "--host", "0.0.0.0")
    assert "0 links" in refused.output
    beyond = run("--host", "0.0.0.0")
    assert beyond.exit_code == 2 and "only with --tls-cert" in beyond.output


def test_without_the_packages_the_command_says_how_to_install_them(desk, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr(grader, "web", grader.web)  # importing it anew puts another one there
    for name in [name for name in sys.modules if name.startswith("grader.web")]:
        monkeypatch.delitem(sys.modules, name)
    run = CliRunner().invoke(cli, ["serve", str(desk.out)])
    assert run.exit_code == 2 and "pip install 'vit-grader[web]'" in run.output


def test_whoever_follows_the_link_at_once_is_not_refused():
    with Listening(port=0).socket() as listener, socket.create_connection(listener.getsockname(), 5):
        pass
