"""Argument checks (Objects.requireNonNull and friends)."""

from numbers import Integral, Real


class Preconditions:
    """A utility class: only static methods, no instances."""

    def __new__(cls):
        raise TypeError("Preconditions is a utility class")

    @staticmethod
    def require_positive(value, name):
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a positive integer, but is {value!r}")
        return int(value)

    @staticmethod
    def require_not_negative(value, name):
        if not isinstance(value, Integral) or value < 0:
            raise ValueError(f"{name} must not be negative, but is {value!r}")
        return int(value)

    @staticmethod
    def require_probability(value, name):
        if not isinstance(value, Real) or not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must lie between 0 and 1, but is {value!r}")
        return float(value)

    @staticmethod
    def require_last_axis(tensor, size, who):
        if tensor.shape[-1] != size:
            raise ValueError(f"{who} expects {size} numbers per token, got {tensor.shape[-1]}")
        return tensor

    @staticmethod
    def require_callable(value, name):
        if not callable(value):
            raise TypeError(f"{name} must be callable")
        return value
