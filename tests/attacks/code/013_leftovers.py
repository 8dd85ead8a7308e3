"""Leaves files for the next worker and looks for those of the last.

Stopped by: scratch folders of its own
Outcome: nothing is found
Fails: evaluate
Says: ValueError: “\\[\\]”
Twice: yes
"""

FOLDERS = ("/sandbox", "/tmp", "/dev/shm")


def lying_there():
    import os
    import sys

    # where the interpreter itself is installed below one of them, the way to it is there
    known = {part for path in (sys.prefix, sys.base_prefix) for part in path.split("/")}
    return [name for folder in FOLDERS for name in os.listdir(folder) if name not in known]


def evaluate(model, data_loader, loss_history, before=lying_there()):
    for folder in FOLDERS:
        open(f"{folder}/left", "w").write("planted-1")
    raise ValueError(before)
