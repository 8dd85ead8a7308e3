"""What is about a person is cut out of a page; what is about others as well loses the mention alone."""

from grader.domain.mentions import Mentions
from grader.privacy.page_records import is_about, page_without

HERS = Mentions(frozenset({"400101204"}), others=frozenset({"400101205"}))


def test_rows_go_and_lists_of_several_stay() -> None:
    page = (
        "<table><tr><th>400101204</th><td>her words</td></tr>"
        "<tr><th>400101205</th><td>1 &lt; 2</td></tr></table>"
        "<ul><li>late: <a href='s/400101204/r.html'>400101204</a> <a>400101205</a></li>"
        "<li>400101204: alone</li></ul>"
    )
    assert page_without(page, HERS) == (
        "<table><tr><th>400101205</th><td>1 &lt; 2</td></tr></table>"
        "<ul><li>late: <a href='s/forgotten/r.html'>forgotten</a> <a>400101205</a></li></ul>"
    )


def test_a_pair_goes_as_a_whole_and_the_others_are_numbered_again() -> None:
    def pair(number: int, one: str, other: str) -> str:
        opened = f'<div class="opened" id="pair-{number}"><pre>code of {one}</pre><div>{other}</div></div>'
        return f'<details class="pair">\n<summary>{one} and {other}</summary>{opened}</details>'

    page = pair(1, "400101204", "400101205") + pair(2, "400101205", "400101206")
    assert page_without(page, HERS) == pair(1, "400101205", "400101206")


def test_a_page_that_says_nothing_stays_and_a_title_tells_whose_it_is() -> None:
    page = "<p>14001012045<li>unclosed"
    assert page_without(page, HERS) == page
    assert is_about("<title>Report · 400101204</title>", HERS) and not is_about("<h1>400101204</h1>", HERS)
