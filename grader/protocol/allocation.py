"""That memory was refused, and by whom: PyTorch has a class of exceptions for it on a GPU only."""

import dis

# how PyTorch's allocator of a processor's memory begins to say it, in a plain RuntimeError
REFUSED = "can't allocate memory"


def is_raised_by_a_statement(error: BaseException) -> bool:
    """Whether a `raise` raised it, and no allocator or system call of a library in C.

    What a statement raises may say anything. It was raised and caught before: it has a traceback.
    """
    # a hostile exception may answer something else when it is asked itself
    last = BaseException.__dict__["__traceback__"].__get__(error)
    while last.tb_next is not None:
        last = last.tb_next
    operation = last.tb_frame.f_code.co_code[last.tb_lasti]
    return dis.opname[operation] in ("RAISE_VARARGS", "RERAISE")


def is_refused_memory(error: BaseException) -> bool:
    """Whether an allocator refused what was asked for on a processor: Python's or PyTorch's."""
    if isinstance(error, MemoryError):
        return True
    if type(error) is not RuntimeError or error.__traceback__ is None:
        return False
    return not is_raised_by_a_statement(error) and REFUSED in str(error)
