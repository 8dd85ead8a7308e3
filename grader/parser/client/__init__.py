"""The trusted end: hands a parser a file's bytes, and checks everything that it answers."""
