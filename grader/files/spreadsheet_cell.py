"""Text in a cell of a spreadsheet, which must not become a formula."""

# A spreadsheet takes a cell that begins so for a formula (OWASP, "CSV Injection").
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
GUARD = "'"


def guarded(text: str) -> str:
    """The text, kept from being read as a formula; `unguarded` gives it back."""
    return f"{GUARD}{text}" if text.startswith((*FORMULA, GUARD)) else text


def unguarded(text: str) -> str:
    """What `guarded` was made from; any other text as it stands."""
    rest = text.removeprefix(GUARD)
    return rest if rest.startswith((*FORMULA, GUARD)) else text
