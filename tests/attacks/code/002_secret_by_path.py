"""Opens the course's secret, the solution and a planted file by their paths.

Stopped by: a root file system of its own
Outcome: nothing is found
Fails: evaluate
Says: \\['FileNotFoundError', 'FileNotFoundError', 'FileNotFoundError'\\]
"""


def evaluate(model, data_loader, loss_history):
    found = []
    for path in (SECRET_FILE, f"{COURSE}/course.toml", f"{COURSE}/reference/vit_defects/solution.py"):
        try:
            with open(path) as file:
                found.append(planted(file.read()))
        except OSError as error:
            found.append(type(error).__name__)
    raise ValueError(found)
