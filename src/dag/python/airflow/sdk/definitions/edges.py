"""Labels on the arrows between tasks."""

from airflow.sdk.definitions._internal.node import DependencyMixin, as_list


class EdgeModifier(DependencyMixin):
    """Stands between two tasks and names the arrow: `a >> Label("yes") >> b`."""

    def __init__(self, label=None):
        self.label = label
        self._upstream = []
        self._downstream = []

    @property
    def roots(self):
        """The tasks after the label."""
        return self._downstream

    @property
    def leaves(self):
        """The tasks before the label."""
        return self._upstream

    def _save(self, others, stream):
        for node in as_list(others):
            if not isinstance(node, DependencyMixin) or isinstance(node, EdgeModifier):
                raise TypeError(f"Cannot use edge labels with {type(node).__name__}, only tasks, XComArg or TaskGroups")
            stream.append(node)
        self._lift_to_groups()

    def _lift_to_groups(self):
        """Tasks of different groups are joined through their groups, as Airflow does it."""
        if not self._upstream or not self._downstream:
            return
        groups = set()
        for node in [*self._upstream, *self._downstream]:
            node = getattr(node, "operator", node)
            group = node if hasattr(node, "group_id") else getattr(node, "task_group", None)
            groups.add(group.group_id if group is not None else None)
        if len(groups) == 1:
            return
        for stream in (self._upstream, self._downstream):
            for i, node in enumerate(stream):
                group = getattr(node, "task_group", None)
                if group is not None and not group.is_root:
                    stream[i] = group

    def set_upstream(self, other, edge_modifier=None):
        """Puts tasks before the label."""
        self._save(other, self._upstream)
        for node in self._downstream:
            node.set_upstream(other, edge_modifier=self)

    def set_downstream(self, other, edge_modifier=None):
        """Puts tasks after the label."""
        self._save(other, self._downstream)
        for node in self._upstream:
            node.set_downstream(other, edge_modifier=self)

    def update_relative(self, other, upstream=True, edge_modifier=None):
        """Set from the other side."""
        self.set_upstream(other) if upstream else self.set_downstream(other)

    def add_edge_info(self, dag, upstream_id, downstream_id):
        """Keeps the label on the Dag."""
        dag.set_edge_info(upstream_id, downstream_id, {"label": self.label})


def Label(label):
    """A label for an arrow."""
    return EdgeModifier(label)
