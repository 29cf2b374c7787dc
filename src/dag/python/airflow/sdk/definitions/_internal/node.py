"""What tasks, task groups and XComArgs have in common: they stand in dependencies."""

from airflow.sdk.definitions._internal.contextmanager import SetupTeardownContext

_KEY_CHARACTERS = frozenset("-._")


class _NotSet:
    """Marks an argument that was left out, where None is a value."""

    def __repr__(self):
        return "NOTSET"

    def __bool__(self):
        return False

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


NOTSET = _NotSet()


class ResolveMixin:
    """Something whose value is known only when the Dag runs."""

    def iter_references(self):
        """The (operator, key) pairs that the value comes from."""
        raise NotImplementedError

    def resolve(self, context):
        """The value, while a task runs."""
        raise NotImplementedError


def validate_key(key, max_length=250):
    """Refuses an id that Airflow's database or its URLs could not hold."""
    _check_key(key, max_length, _KEY_CHARACTERS, "alphanumeric characters, dashes, dots, and underscores")


def validate_group_key(key, max_length=200):
    """Refuses a group id with characters that Airflow does not accept, among them dots."""
    _check_key(key, max_length, frozenset("-_"), "alphanumeric characters, dashes, and underscores")


def _check_key(key, max_length, extra, described):
    if not isinstance(key, str):
        raise TypeError(f"The key has to be a string and is {type(key)}:{key}")
    if len(key) > max_length:
        raise ValueError(f"The key has to be less than {max_length} characters, not {len(key)}")
    if not key or not all(c.isalnum() or c in extra for c in key):
        raise ValueError(f"The key {key!r} has to be made of {described} exclusively")


def as_list(value):
    """One thing or a sequence of them, as a list."""
    if isinstance(value, (list, tuple)):
        return value
    return [value]


class DependencyMixin:
    """The operators `>>` and `<<`, between one thing or lists of things."""

    is_setup = False
    is_teardown = False
    on_failure_fail_dagrun = False

    @property
    def roots(self):
        """What an arrow into this thing points at."""
        raise NotImplementedError

    @property
    def leaves(self):
        """What an arrow out of this thing starts from."""
        raise NotImplementedError

    def set_upstream(self, other, edge_modifier=None):
        """Puts `other` (a task or a list) before this."""
        raise NotImplementedError

    def set_downstream(self, other, edge_modifier=None):
        """Puts `other` (a task or a list) after this."""
        raise NotImplementedError

    def as_setup(self):
        """Marks the tasks as setup tasks."""
        raise NotImplementedError

    def as_teardown(self, *, setups=None, on_failure_fail_dagrun=None):
        """Marks the tasks as teardown tasks, after the given setups."""
        raise NotImplementedError

    def update_relative(self, other, upstream=True, edge_modifier=None):
        """Told when a dependency is set from the other side; groups and labels care."""

    def __rshift__(self, other):
        self.set_downstream(other)
        return other

    def __lshift__(self, other):
        self.set_upstream(other)
        return other

    def __rrshift__(self, other):
        self.set_upstream(list(other) if isinstance(other, tuple) else other)
        return self

    def __rlshift__(self, other):
        self.set_downstream(list(other) if isinstance(other, tuple) else other)
        return self


class DAGNode(DependencyMixin):
    """A task or a task group: something with an id that belongs to a Dag."""

    def __init__(self):
        self.upstream_task_ids = set()
        self.downstream_task_ids = set()
        self.task_group = None
        super().__init__()

    @property
    def node_id(self):
        """The id, with the prefixes of the groups around."""
        raise NotImplementedError

    @property
    def dag_id(self):
        """The id of the Dag; an in-memory placeholder without one."""
        dag = getattr(self, "_dag", None) or getattr(self, "dag", None)
        return dag.dag_id if dag else "_in_memory_dag_"

    @property
    def label(self):
        """The id without the prefix of the group around."""
        group = self.task_group
        if group and group.node_id and group.prefix_group_id:
            return self.node_id[len(group.node_id) + 1 :]
        return self.node_id

    def has_dag(self):
        """Does the node belong to a Dag?"""
        return getattr(self, "dag", None) is not None

    @property
    def upstream_list(self):
        """The nodes directly before this one."""
        return [self.dag.get_task(task_id) for task_id in self.upstream_task_ids]

    @property
    def downstream_list(self):
        """The nodes directly after this one."""
        return [self.dag.get_task(task_id) for task_id in self.downstream_task_ids]

    def get_direct_relative_ids(self, upstream=False):
        """Ids of the nodes directly before or after."""
        return self.upstream_task_ids if upstream else self.downstream_task_ids

    def get_direct_relatives(self, upstream=False):
        """The nodes directly before or after."""
        return self.upstream_list if upstream else self.downstream_list

    def get_flat_relative_ids(self, *, upstream=False):
        """Ids of everything before or after, however far."""
        found = set()
        pending = [self]
        while pending:
            node = pending.pop()
            for task_id in node.get_direct_relative_ids(upstream):
                if task_id not in found:
                    found.add(task_id)
                    pending.append(self.dag.task_dict[task_id])
        return found

    def get_flat_relatives(self, upstream=False):
        """Everything before or after, however far."""
        return [self.dag.task_dict[task_id] for task_id in self.get_flat_relative_ids(upstream=upstream)]

    def get_closest_mapped_task_group(self):
        """The innermost mapped group around the node; None without one."""
        group = self.task_group
        while group is not None:
            if group.is_mapped_group:
                return group
            group = group.parent_group
        return None

    def set_upstream(self, other, edge_modifier=None):
        """Puts `other` before this node."""
        self._set_relatives(other, True, edge_modifier)

    def set_downstream(self, other, edge_modifier=None):
        """Puts `other` after this node."""
        self._set_relatives(other, False, edge_modifier)

    def _set_relatives(self, others, upstream, edge_modifier=None):
        relatives = []
        for other in as_list(others):
            other.update_relative(self, not upstream, edge_modifier=edge_modifier)
            for task in other.leaves if upstream else other.roots:
                if not getattr(task, "is_operator", False):
                    raise TypeError(
                        f"Relationships can only be set between Operators; received {task.__class__.__name__}"
                    )
                relatives.append(task)
        dags = []
        for task in [*self.roots, *relatives]:
            if task.has_dag() and not any(task.dag is dag for dag in dags):
                dags.append(task.dag)
        if len(dags) > 1:
            raise RuntimeError(f"Tried to set relationships between tasks in more than one Dag: {set(dags)}")
        if not dags:
            raise ValueError(
                "Tried to create relationships between tasks that don't have Dags yet. "
                f"Set the Dag for at least one task and try again: {[self, *relatives]}"
            )
        dag = dags[0]
        if not self.has_dag():
            self.dag = dag
        for task in relatives:
            if not task.has_dag():
                dag.add_task(task)
            before, after = (task, self) if upstream else (self, task)
            before.downstream_task_ids.add(after.node_id)
            after.upstream_task_ids.add(before.node_id)
            if edge_modifier is not None:
                edge_modifier.add_edge_info(dag, before.node_id, after.node_id)

    def as_setup(self):
        """Marks the task as a setup task."""
        self.is_setup = True
        return self

    def as_teardown(self, *, setups=None, on_failure_fail_dagrun=None):
        """Marks the task as a teardown task, after the given setups."""
        self.is_teardown = True
        self.trigger_rule = "all_done_setup_success"
        if on_failure_fail_dagrun is not None:
            self.on_failure_fail_dagrun = on_failure_fail_dagrun
        if setups is not None:
            for setup in as_list(setups):
                setup.is_setup = True
                setup >> self
        return self

    def __enter__(self):
        if not self.is_setup and not self.is_teardown:
            from airflow.sdk.exceptions import AirflowException

            raise AirflowException("Only setup/teardown tasks can be used as context managers.")
        SetupTeardownContext.enter([self])
        return SetupTeardownContext

    def __exit__(self, exc_type, exc, tb):
        SetupTeardownContext.leave()
