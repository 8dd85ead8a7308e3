"""Types commands into the operator's terminal.

Stopped by: a session of its own without a terminal
Outcome: nothing happens
Fails: evaluate
Says: ValueError: “\\(\\[1, 1, 1\\], False\\)”
"""


def evaluate(model, data_loader, loss_history):
    import fcntl
    import os
    import termios

    found = []
    for number in (0, 1, 2):
        try:
            fcntl.ioctl(number, termios.TIOCSTI, b"x")
            found.append("planted-6")
        except OSError as error:
            found.append(error.errno)
    raise ValueError(found, os.path.exists("/dev/tty"))
