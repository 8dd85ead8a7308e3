"""Writes results, reports and evidence.

Stopped by: a root file system of its own
Outcome: nothing happens
Fails: evaluate
Says: FileNotFoundError
"""


def evaluate(model, data_loader, loss_history):
    for name in ("results.json", "scores.csv", "students/1/report.html"):
        open(f"{RESULTS}/{name}", "w").write("100")
