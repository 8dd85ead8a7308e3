"""A student's own machine: check, train and pack one's own homework, without the Linux layers."""
