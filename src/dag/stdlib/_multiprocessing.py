"""Semaphores between processes, of which Dag code has one."""


class SemLock:
    SEM_VALUE_MAX = 2147483647

    def __init__(self, *args, **kwargs):
        raise PermissionError(13, "Dag code on this worker can't start processes; run this task on a Python worker")


def sem_unlink(name):
    pass
