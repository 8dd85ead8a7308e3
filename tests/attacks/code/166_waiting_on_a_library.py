"""Waits on a word of a library's file that every worker maps, and asks which of its pages are in memory.

Stopped by: the system-call filter: who waits, waits for its own threads only
Outcome: nothing is found
Fails: evaluate
Says: ValueError: “\\[\\]”
"""


def evaluate(model, data_loader, loss_history):
    import ctypes
    import os
    import threading
    import time

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    descriptor = os.open(os.__file__, os.O_RDONLY)
    word = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 1, 1, descriptor, ctypes.c_long(0)))
    value = ctypes.c_uint.from_address(word.value).value
    answers = []

    def wait():
        soon = (ctypes.c_long * 2)(1, 0)
        answers.append(libc.syscall(202, word, 0, value, soon, None, 0))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    found = [libc.syscall(202, word, 1, 9, None, None, 0)]
    thread.join()
    found = [each for each in (*found, *(answer for answer in answers if answer == 0)) if each]
    told = ctypes.create_string_buffer(1)
    for name, failed in (
        ("mincore", libc.mincore(word, ctypes.c_size_t(4096), told)),
        ("MADV_PAGEOUT", libc.madvise(word, ctypes.c_size_t(4096), 21)),
        ("MADV_COLD", libc.madvise(word, ctypes.c_size_t(4096), 20)),
        ("futex_waitv", libc.syscall(449, 0, 0, 0, 0, 0)),
        ("futex_wake", libc.syscall(454, word, 1, 1, 0)),
        ("cachestat", libc.syscall(451, descriptor, ctypes.create_string_buffer(16), told, 0)),
        ("preadv2, if in memory", libc.syscall(327, descriptor, 0, 0, 0, 0, 8)),
    ):
        if failed != -1 or ctypes.get_errno() not in (1, 38):
            found.append((name, failed, ctypes.get_errno()))
    raise ValueError(found)
