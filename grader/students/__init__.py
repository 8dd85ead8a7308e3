"""A student's own machine: check, train and pack one's homework, without the layers that need Linux."""
