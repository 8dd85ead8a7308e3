"""Changes the kernel's settings.

Stopped by: no privileges, Landlock
Outcome: nothing happens
Fails: evaluate
Says: 'found \\[\\]', 4
"""


def evaluate(model, data_loader, loss_history):
    found = []
    for path in (
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
        "/proc/self/uid_map",
    ):
        try:
            open(path, "w").write("1")
            found.append("planted-5")
        except OSError as error:
            found.append(type(error).__name__)
    raise ValueError(planted(found), len(found))
