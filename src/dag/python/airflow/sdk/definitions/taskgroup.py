"""Task groups, plain and mapped."""

from airflow.sdk.definitions._internal.contextmanager import DagContext, TaskGroupContext
from airflow.sdk.definitions._internal.node import DAGNode, as_list, validate_group_key

_CURRENT = object()


def split_suffix(text):
    """`task__3` as (`task`, 3); (`task`, None) without such a suffix."""
    core, separator, digits = text.rpartition("__")
    if separator and digits.isdigit():
        return core, int(digits)
    return text, None


class TaskGroup(DAGNode):
    """A set of tasks that are shown together; their ids get the group's as prefix."""

    is_mapped_group = False

    def __init__(
        self,
        group_id,
        group_display_name="",
        prefix_group_id=True,
        parent_group=_CURRENT,
        dag=None,
        default_args=None,
        tooltip="",
        doc_md=None,
        ui_color="CornflowerBlue",
        ui_fgcolor="#000",
        add_suffix_on_collision=False,
    ):
        super().__init__()
        if group_id is not None:
            validate_group_key(group_id)
        if parent_group is _CURRENT:
            parent_group = TaskGroupContext.get_current()
        self._group_id = group_id
        self.group_display_name = group_display_name
        self.prefix_group_id = prefix_group_id
        self.parent_group = parent_group
        self.dag = dag or (parent_group.dag if parent_group is not None else DagContext.get_current())
        if self.dag is None:
            raise RuntimeError("TaskGroup can only be used inside a dag")
        self.default_args = dict(default_args or {})
        self.tooltip = tooltip
        self.doc_md = doc_md
        self.ui_color = ui_color
        self.ui_fgcolor = ui_fgcolor
        self.children = {}
        self.upstream_group_ids = set()
        self.downstream_group_ids = set()
        self.used_group_ids = parent_group.used_group_ids if parent_group is not None else set()
        self._avoid_collision(add_suffix_on_collision)
        if group_id and self.parent_group is None:
            self.parent_group = self.dag.task_group
            self.used_group_ids = self.parent_group.used_group_ids
        if self.parent_group is not None:
            self.parent_group.add(self)
            self.default_args = {**(self.parent_group.default_args or {}), **self.default_args}
        if group_id:
            self.used_group_ids.update((self.group_id, self.downstream_join_id, self.upstream_join_id))

    def _avoid_collision(self, add_suffix):
        if self._group_id is None or self.group_id not in self.used_group_ids:
            return
        if not add_suffix:
            from airflow.sdk.exceptions import DuplicateTaskIdFound

            raise DuplicateTaskIdFound(f"group_id '{self._group_id}' has already been added to the DAG")
        base, _ = split_suffix(self._group_id)
        taken = [
            number
            for core, number in (split_suffix(used) for used in self.used_group_ids if used is not None)
            if core == base and number is not None
        ]
        self._group_id = f"{base}__{max(taken) + 1}" if taken else f"{self._group_id}__1"

    @classmethod
    def create_root(cls, dag):
        """The group that holds everything of a Dag; without an id."""
        return cls(group_id=None, dag=dag, parent_group=None)

    @property
    def group_id(self):
        """The id, with the prefixes of the groups around."""
        parent = self.parent_group
        if self._group_id and parent is not None and parent.prefix_group_id and parent._group_id:
            return parent.child_id(self._group_id)
        return self._group_id

    node_id = group_id

    @property
    def label(self):
        """What the UI shows."""
        return self.group_display_name or self._group_id

    @property
    def is_root(self):
        """Is this the group that holds everything of a Dag?"""
        return not self._group_id

    @property
    def task_group(self):
        """The group around."""
        return self.parent_group

    @task_group.setter
    def task_group(self, value):
        self.parent_group = value

    def __iter__(self):
        for child in self.children.values():
            yield from child if isinstance(child, TaskGroup) else (child,)

    def iter_tasks(self):
        """Every task inside, however deep."""
        return iter(self)

    def iter_mapped_task_groups(self):
        """The mapped groups around, this one included, innermost first."""
        group = self
        while group is not None:
            if group.is_mapped_group:
                yield group
            group = group.parent_group

    def add(self, task):
        """Puts a task or a group into this group."""
        existing = task.task_group
        if TaskGroupContext.is_active() and existing is not None and existing is not self:
            existing.children.pop(task.node_id, None)
            task.task_group = existing = self
        is_group = isinstance(task, TaskGroup)
        if not is_group and existing is not None and existing is not self:
            from airflow.sdk.exceptions import TaskAlreadyInTaskGroup

            raise TaskAlreadyInTaskGroup(task.node_id, existing.node_id, self.node_id)
        task.task_group = self
        key = task.node_id
        if key in self.children:
            kind = "Task Group" if is_group else "Task"
            from airflow.sdk.exceptions import DuplicateTaskIdFound

            raise DuplicateTaskIdFound(f"{kind} id '{key}' has already been added to the Dag")
        if is_group:
            if task.dag is not self.dag:
                raise ValueError("Cannot mix TaskGroups from different Dags: %s and %s", self.dag, task.dag)
            if task.children:
                raise ValueError("Cannot add a non-empty TaskGroup")
        self.children[key] = task
        return task

    def child_id(self, label):
        """The id of a child called `label`."""
        if self.prefix_group_id and self.group_id:
            return f"{self.group_id}.{label}"
        return label

    @property
    def upstream_join_id(self):
        """The id of the node that joins the arrows into the group."""
        return f"{self.group_id}.upstream_join_id"

    @property
    def downstream_join_id(self):
        """The id of the node that joins the arrows out of the group."""
        return f"{self.group_id}.downstream_join_id"

    def get_task_group_dict(self):
        """Every group inside by its id, this one included."""
        groups = {self.group_id: self}
        for child in self.children.values():
            if isinstance(child, TaskGroup):
                groups.update(child.get_task_group_dict())
        return groups

    def get_child_by_label(self, label):
        """The child called `label`, without prefix."""
        return self.children[self.child_id(label)]

    def __getitem__(self, label):
        try:
            return self.get_child_by_label(label)
        except KeyError:
            from airflow.sdk.exceptions import NodeNotFound

            raise NodeNotFound(f"Task {label!r} not found") from None

    def has_task(self, task):
        """Is the task inside, however deep?"""
        return any(inside is task for inside in self)

    def get_roots(self):
        """The tasks inside with nothing inside before them."""
        inside = {task.task_id: task for task in self}
        for task in inside.values():
            if not any(task_id in inside for task_id in task.upstream_task_ids):
                yield task

    def get_leaves(self):
        """The tasks inside with nothing inside after them; teardowns do not count."""
        tasks = list(self)
        ids = {task.task_id for task in tasks}

        def goes_on(task, without):
            return any(
                down.task_id != without and down.task_id in ids and not down.is_teardown
                for down in task.downstream_list
            )

        def before_teardown(task):
            for up in task.upstream_list:
                if up.task_id not in ids:
                    continue
                if up.is_teardown:
                    yield from before_teardown(up)
                elif not (task.is_teardown and up.is_setup) and not goes_on(up, task.task_id):
                    yield up

        for task in tasks:
            if task.downstream_task_ids.isdisjoint(ids):
                if task.is_teardown:
                    yield from before_teardown(task)
                else:
                    yield task

    @property
    def roots(self):
        """The first tasks inside."""
        return list(self.get_roots())

    @property
    def leaves(self):
        """The last tasks inside."""
        return list(self.get_leaves())

    def update_relative(self, other, upstream=True, edge_modifier=None):
        """Keeps what stands before and after the group, for empty groups and the UI."""
        if isinstance(other, TaskGroup):
            later, earlier = (self, other) if upstream else (other, self)
            later.upstream_group_ids.add(earlier.group_id)
            earlier.downstream_group_ids.add(later.group_id)
            return
        for task in other.roots:
            if not isinstance(task, DAGNode):
                raise RuntimeError(
                    f"Relationships can only be set between TaskGroup or operators; received {task.__class__.__name__}"
                )
            if task is not self:
                (self.upstream_task_ids if upstream else self.downstream_task_ids).add(task.node_id)

    def _last_before(self):
        """The leaves; for an empty group those of what stands before it."""
        group = self
        while group is not None:
            leaves = list(group.get_leaves())
            if leaves:
                return leaves
            if group.upstream_task_ids:
                return [self.dag.get_task(task_id) for task_id in group.upstream_task_ids]
            group = group.parent_group
        return []

    def _set_relatives(self, others, upstream, edge_modifier=None):
        others = as_list(others)
        leaves = [] if upstream else self._last_before()
        for other in others:
            self.update_relative(other, upstream, edge_modifier=edge_modifier)
        if upstream:
            for task in self.get_roots():
                task.set_upstream(others)
        else:
            for task in leaves:
                task.set_downstream(others)

    def __enter__(self):
        TaskGroupContext.push(self)
        return self

    def __exit__(self, exc_type, exc, tb):
        TaskGroupContext.pop()

    def __repr__(self):
        return f"<TaskGroup: {self.group_id}>"


class MappedTaskGroup(TaskGroup):
    """A task group that runs once per item; made by `.expand` of a `@task_group` function."""

    is_mapped_group = True

    def __init__(self, *args, expand_input, **kwargs):
        super().__init__(*args, **kwargs)
        self._expand_input = expand_input

    def __iter__(self):
        for task in super().__iter__():
            if getattr(task, "trigger_rule", None) == "always":
                raise ValueError(
                    "Task-generated mapping within a mapped task group is not allowed with trigger rule 'always'"
                )
            yield task

    def __exit__(self, exc_type, exc, tb):
        for operator, _ in self._expand_input.iter_references():
            self.set_upstream(operator)
        super().__exit__(exc_type, exc, tb)
