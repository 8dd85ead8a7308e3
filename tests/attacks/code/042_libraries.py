"""Changes installed libraries and the system's programs.

Stopped by: read-only binds, Landlock
Outcome: nothing happens
Fails: evaluate
Says: 'found \\[\\]', 5
"""


def evaluate(model, data_loader, loss_history):
    import os

    found = []
    for path in (torch.__file__, os.__file__, "/usr/bin/env", "/usr/lib/evil.so", "/etc/passwd"):
        try:
            open(path, "a").write("planted-4")
            found.append("planted-4")
        except OSError as error:
            found.append(type(error).__name__)
    raise ValueError(planted(found), len(found))
