"""What a command would print, as HTML for a notebook and as plain text, in the same words.

`check_service` fills it in a process of its own, for `grader.check` and `%%check`; the kernel only displays
what `bundle` returns.
"""

import io
from collections.abc import Sequence

from markupsafe import Markup
from rich.text import Text

from grader.cli.terminal_page import WIDEST, Page
from grader.domain.formatting import clipped, printable
from grader.reports.typesetting import prose

# Colors that are visible on white and on black: a notebook does not say which of the two it has. Words have
# the notebook's own color.
COLORS = {"passed": "#2da44e", "failed": "#e5534b", "note": "#8b949e"}
UNDECIDED = "#bf8700"
MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.92em"
ROOT = Markup(
    '<div class="vit-grader" style="font-family:system-ui,-apple-system,sans-serif;font-size:14px;'
    # quotations bring their own marks
    'line-height:1.5;max-width:60em;overflow-wrap:anywhere;quotes:none">{}</div>'
)
DIM = "opacity:.75"
INDENT = 0.55  # em, for each column of a terminal


class NotebookPage(Page):
    """A page that is kept, and shown as a whole again and again. All that it is given is escaped."""

    def __init__(self) -> None:
        self._file = io.StringIO()
        # a kernel's environment claims a terminal even for output into a file
        super().__init__(self._file, terminal=False)
        self._plain = Page(self._file, terminal=False)
        self._blocks: list[Markup] = []

    def bundle(self, progress: str = "") -> dict[str, str]:
        """The page so far, by MIME type.

        Args:
            progress: What is being done, in a line below it.
        """
        blocks, text = list(self._blocks), self._file.getvalue().strip("\n")
        if progress:
            blocks.append(_block(prose(progress), DIM, above=bool(blocks)))
            text = f"{text}\n\n{progress}".strip("\n")
        return {"text/html": str(ROOT.format(Markup("").join(blocks))), "text/plain": text}

    def title(self, text: str) -> None:
        """What is checked; plain text does not have this line."""
        self._blocks.append(_block(Markup("<strong>{}</strong>").format(printable(text))))

    def heading(self, text: str) -> None:
        """A heading, with space before it."""
        self._plain.heading(text)
        self._blocks.append(_block(Markup("<strong>{}</strong>").format(printable(text)), above=True))

    def item(self, kind: str, text: str, *, style: str = "") -> None:
        """A marked line."""
        self._plain.item(kind, text, style=style)
        self._marked(kind, Markup("{}").format(prose(text)), 2)

    def detail(self, text: str, *, style: str = "", indent: int = 4) -> None:
        """A line that belongs to the one above it."""
        self._plain.detail(text, style=style, indent=indent)
        self._blocks.append(_block(prose(text), DIM if style == "dim" else "", indent))

    def command(self, purpose: str, command: str, *, indent: int = 4) -> None:
        """Show nothing: there is no command line here."""

    def code(self, place: str, line: str, *, indent: int = 4) -> None:
        """A place in the student's cells, and the line there."""
        self._plain.code(place, line, indent=indent)
        shown = Markup('<span style="{}">{}</span>').format(DIM, printable(place))
        if line:
            written = printable(clipped(line.strip(), WIDEST))
            shown += Markup(' <code dir="ltr" style="{}">{}</code>').format(MONO, written)
        self._blocks.append(_block(shown, "", indent))

    def pairs(self, rows: Sequence[tuple[str, str]], *, width: int = 0, indent: int = 2) -> None:
        """Names and values in two columns."""
        self._plain.pairs(rows, width=width, indent=indent)
        for name, value in rows:
            self._hanging(
                Markup('<span style="{}">{}</span>').format(DIM, printable(name)), 7, prose(value), indent
            )

    def verdict(self, good: bool, text: str) -> None:
        """The last line, in a sentence."""
        self._plain.verdict(good, text)
        sentence = Markup("<strong>{}</strong>").format(prose(text))
        self._marked("passed" if good else "failed", sentence, 0, above=True)

    def _marked(self, kind: str, words: Markup, indent: int, *, above: bool = False) -> None:
        color = COLORS.get(kind, UNDECIDED)
        mark = Markup('<span style="color:{}">{}</span>').format(color, self.mark(kind).plain)
        self._hanging(mark, 1.3, words, indent, above=above)

    def _hanging(
        self, first: Markup, width: float, words: Markup, indent: int, *, above: bool = False
    ) -> None:
        """Words beside something of this width (em); further lines are aligned with the words."""
        box = Markup('<span style="display:inline-block;min-width:{}em;text-indent:0">{}</span>')
        style = f"padding-left:{width}em;text-indent:-{width}em"
        self._blocks.append(_block(box.format(width, first) + words, style, indent, above=above))

    def _print(self, text: Text, indent: int) -> None:
        """Show whatever else a page prints as on a terminal."""
        self._plain._print(text, indent)
        self._blocks.append(
            _block(
                Markup("{}").format(text.plain),
                f"white-space:pre;overflow:hidden;text-overflow:ellipsis;{MONO}",
                indent,
            )
        )


def _block(words: Markup, style: str = "", indent: int = 0, *, above: bool = False) -> Markup:
    """A line of its own.

    Args:
        above: With space before it.
    """
    margin = f"margin:{'.7em' if above else '0'} 0 0 {INDENT * indent:.2f}em"
    return Markup('<div style="{}">{}</div>').format(";".join(filter(None, (margin, style))), words)
