"""Reads its environment and command line, and those of every process.

Stopped by: a scrubbed environment, the PID namespace
Outcome: nothing is found
Fails: evaluate
Says: \\(2, 'found \\[\\]'\\)
"""


def evaluate(model, data_loader, loss_history):
    import os

    texts = [str(dict(os.environ))]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline"):
            try:
                texts.append(open(f"/proc/{pid}/{name}").read())
            except FileNotFoundError:
                continue
    raise ValueError(len(texts), planted(texts))
