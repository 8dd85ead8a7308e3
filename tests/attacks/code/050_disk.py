"""Fills the disk, its inodes and the table of open files.

Stopped by: bounded scratch folders, the limit on descriptors
Outcome: nothing happens
Fails: evaluate
Says: \\['ENOSPC', 'ENOSPC', 'EMFILE'\\]
"""


def evaluate(model, data_loader, loss_history):
    import errno
    import os

    found = []
    try:
        for number in range(10_000):
            with open(f"/tmp/big{number}", "wb") as file:
                file.write(bytes(30_000_000))
    except OSError as error:
        found.append(errno.errorcode[error.errno])
    for number in range(10):
        os.truncate(f"/tmp/big{number}", 0) if os.path.exists(f"/tmp/big{number}") else None
    try:
        for number in range(100_000):
            os.mkdir(f"/dev/shm/{number}")
    except OSError as error:
        found.append(errno.errorcode[error.errno])
    try:
        files = [open("/dev/null") for number in range(100_000)]
    except OSError as error:
        found.append(errno.errorcode[error.errno])
    raise ValueError(found)
