"""Which Dag, task group and setup/teardown task a `with` block has made current."""


class _Stack:
    """A stack of the objects whose `with` blocks are open; each subclass has its own."""

    _open = []

    def __init_subclass__(cls):
        cls._open = []

    @classmethod
    def push(cls, item):
        """Opens a block."""
        cls._open.append(item)

    @classmethod
    def pop(cls):
        """Closes the innermost block."""
        return cls._open.pop()


class DagContext(_Stack):
    """The Dags whose blocks are open, and those that registered themselves when theirs closed."""

    autoregistered_dags = []
    current_autoregister_module_name = None

    @classmethod
    def get_current(cls):
        """The innermost Dag; None outside."""
        return cls._open[-1] if cls._open else None

    get_current_dag = get_current

    @classmethod
    def pop(cls):
        """Closes the innermost block and registers its Dag."""
        dag = super().pop()
        if cls.current_autoregister_module_name is not None and dag.auto_register:
            if not any(dag is known for known in cls.autoregistered_dags):
                cls.autoregistered_dags.append(dag)
        return dag


class TaskGroupContext(_Stack):
    """The task groups whose blocks are open."""

    @classmethod
    def get_current(cls, dag=None):
        """The innermost group; else the root group of the Dag; None outside."""
        if cls._open:
            return cls._open[-1]
        dag = dag or DagContext.get_current()
        return dag.task_group if dag else None

    @classmethod
    def is_active(cls):
        """Is any group's block open?"""
        return bool(cls._open)


class SetupTeardownContext:
    """`with setup_task:` puts the tasks of the block after the setup and before its teardowns (and the reverse)."""

    _blocks = []

    @classmethod
    def enter(cls, tasks):
        """Opens a block on the given setup or teardown tasks."""
        kinds = {task.is_setup for task in tasks}
        if len(kinds) > 1:
            cls._blocks.clear()
            raise ValueError("All tasks in the list must be either setup or teardown tasks")
        cls._blocks.append((list(tasks), []))

    @classmethod
    def is_active(cls):
        """Is any block open?"""
        return bool(cls._blocks)

    @classmethod
    def add_task(cls, task):
        """Adds a task that was made outside to the innermost block."""
        if not cls._blocks:
            from airflow.sdk.exceptions import AirflowException

            raise AirflowException("Cannot add task to context outside the context manager.")
        cls.note(getattr(task, "operator", task))

    @classmethod
    def note(cls, task):
        """Remembers a task made inside the innermost block."""
        if cls._blocks and not task.is_setup and not task.is_teardown:
            cls._blocks[-1][1].append(task)

    @classmethod
    def leave(cls):
        """Closes the innermost block: sets the dependencies of the work inside it."""
        managers, inside = cls._blocks.pop()
        work = [task for task in inside if not task.is_setup and not task.is_teardown]
        is_setup = managers[0].is_setup
        partners = _partners(managers[0], is_setup)
        setups, teardowns = (managers, partners) if is_setup else (partners, managers)
        if work:
            roots = [task for task in work if not task.upstream_task_ids] or work[:1]
            leaves = [task for task in work if not task.downstream_task_ids] or work[-1:]
            for task in roots:
                for setup in setups:
                    task.set_upstream(setup)
            for task in leaves:
                for teardown in teardowns:
                    task.set_downstream(teardown)
        if cls._blocks:
            outer, _ = cls._blocks[-1]
            if outer[0].is_setup == is_setup:
                for task in managers:
                    task.set_upstream(outer) if is_setup else task.set_downstream(outer)
                outer_partners = _partners(outer[0], is_setup)
                for task in partners:
                    for outer_partner in outer_partners:
                        task.set_downstream(outer_partner) if is_setup else task.set_upstream(outer_partner)


def _partners(task, is_setup):
    """The nearest teardowns after a setup, or the nearest setups before a teardown."""
    seen = {task.node_id}
    level = task.downstream_list if is_setup else task.upstream_list
    while level:
        found = [other for other in level if (other.is_teardown if is_setup else other.is_setup)]
        if found:
            return found
        seen.update(other.node_id for other in level)
        following = []
        for other in level:
            for relative in other.downstream_list if is_setup else other.upstream_list:
                if relative.node_id not in seen and relative not in following:
                    following.append(relative)
        level = following
    return []
