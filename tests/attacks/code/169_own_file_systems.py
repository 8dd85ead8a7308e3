"""Fills and counts the files of its own file systems, and looks for a count that others share.

Stopped by: each worker's files, their numbers and their room are those of file systems of its own
Outcome: nothing is found
Fails: evaluate
Says: ValueError: “\\[\\]”
Twice: yes
"""


def evaluate(model, data_loader, loss_history):
    import os
    import tempfile

    found = []
    with tempfile.TemporaryFile() as first:
        number, room = os.fstat(first.fileno()).st_ino, os.fstatvfs(first.fileno())
    if number > 4096 or room.f_blocks * room.f_frsize > 2_000_000_000:
        found.append((number, room))
    own = os.stat(".").st_dev
    for place in ("/usr/lib", os.path.dirname(os.__file__), "/dev/null"):
        if os.stat(place).st_dev == own:
            found.append(place)
        if place != "/dev/null" and not os.statvfs(place).f_flag & os.ST_RDONLY:
            found.append(f"room in {place}")
    with open("filling", "wb") as stream:
        stream.write(bytes(20_000_000))
    for node in range(500):
        open(f"node-{node}", "w").close()
    if os.getpid() != 1:
        found.append("numbers of processes")
    raise ValueError(found)
