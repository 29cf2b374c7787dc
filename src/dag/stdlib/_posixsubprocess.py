"""Starting processes, which Dag code can't."""


def fork_exec(*args):
    raise PermissionError(
        13, "Dag code on this worker can't start processes; run this task on a Python worker"
    )
