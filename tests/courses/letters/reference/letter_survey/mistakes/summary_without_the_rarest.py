"""The summary names the commonest letter and not the rarest."""


def summary(text):
    return "".join(line for line in text.splitlines(keepends=True) if "rarest" not in line)
