"""Makes system calls by the 32-bit numbers, in machine code.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: signal 31
"""


def evaluate(model, data_loader, loss_history):
    import ctypes
    import mmap

    # mov eax, 20 (getpid by its 32-bit number); int 0x80; ret
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("b814000000cd80c3"))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    raise ValueError(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
