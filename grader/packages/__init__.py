"""An assignment inside another grader: the package that it is uploaded as, and what runs there."""
