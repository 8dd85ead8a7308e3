"""The trusted end: gives a parser a file's bytes, and checks everything that it answers."""
