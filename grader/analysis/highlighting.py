"""Syntax highlighting: Python as lines of colored pieces.

Where the lexer would change a character, the lines are left plain, since findings stand beside them by
number. It decides nothing about the code; `view` decides which cells are shown.

Tests: tests/analysis/test_view.py
"""

from pygments.lexers.python import PythonLexer
from pygments.token import Token

from grader.domain.submission_view import CodeLine, plain_lines, text_of

_LEXER = PythonLexer(stripnl=False, ensurenl=False)
# what a reader tells apart; everything else has the color of text
_KINDS = {
    Token.Keyword: "keyword",
    Token.Operator.Word: "keyword",
    Token.Literal.String: "string",
    Token.Literal.Number: "digits",
    Token.Comment: "comment",
    Token.Name.Class: "defined",
    Token.Name.Function: "defined",
    Token.Name.Decorator: "defined",
}


def highlighted(code: str) -> tuple[CodeLine, ...]:
    """The lines of `code`, as `str.split` counts them, each with what its pieces are.

    Args:
        code: Python, or nearly; `\\n` between lines.
    """
    lines: list[list[tuple[str, str]]] = [[]]
    for token, text in _LEXER.get_tokens(code):
        kind = _kind(token)
        for index, piece in enumerate(text.split("\n")):
            if index:
                lines.append([])
            if piece and lines[-1] and lines[-1][-1][0] == kind:
                lines[-1][-1] = (kind, lines[-1][-1][1] + piece)
            elif piece:
                lines[-1].append((kind, piece))
    found = tuple(tuple(line) for line in lines)
    # a lexer that changed anything would set findings beside other lines than they are about
    return found if text_of(found) == code else plain_lines(code)


def _kind(token: object) -> str:
    while token is not None and token not in _KINDS:
        token = getattr(token, "parent", None)
    return _KINDS.get(token, "") if token is not None else ""
