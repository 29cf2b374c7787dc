"""Enumerations that Dag files use."""

from enum import Enum


class TriggerRule(str, Enum):
    """When a task runs, by the states of the tasks before it."""

    ALL_SUCCESS = "all_success"
    ALL_FAILED = "all_failed"
    ALL_DONE = "all_done"
    ALL_DONE_MIN_ONE_SUCCESS = "all_done_min_one_success"
    ALL_DONE_SETUP_SUCCESS = "all_done_setup_success"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    ONE_DONE = "one_done"
    NONE_FAILED = "none_failed"
    NONE_SKIPPED = "none_skipped"
    ALWAYS = "always"
    NONE_FAILED_MIN_ONE_SUCCESS = "none_failed_min_one_success"
    ALL_SKIPPED = "all_skipped"

    def __str__(self):
        return self.value


class WeightRule(str, Enum):
    """How the priority weights of tasks add up."""

    DOWNSTREAM = "downstream"
    UPSTREAM = "upstream"
    ABSOLUTE = "absolute"


class DagRunState(str, Enum):
    """States of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"

    def __str__(self):
        return self.value


class DagRunType(str, Enum):
    """What started a run."""

    BACKFILL = "backfill"
    SCHEDULED = "scheduled"
    MANUAL = "manual"
    OPERATOR_TRIGGERED = "operator_triggered"
    ASSET_TRIGGERED = "asset_triggered"
    ASSET_MATERIALIZATION = "asset_materialization"

    def __str__(self):
        return self.value


class TaskInstanceState(str, Enum):
    """States of a task instance."""

    REMOVED = "removed"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    RESTARTING = "restarting"
    FAILED = "failed"
    UP_FOR_RETRY = "up_for_retry"
    UP_FOR_RESCHEDULE = "up_for_reschedule"
    UPSTREAM_FAILED = "upstream_failed"
    SKIPPED = "skipped"
    DEFERRED = "deferred"
    AWAITING_INPUT = "awaiting_input"

    def __str__(self):
        return self.value


class State:
    """The states as plain constants, from before the enumerations."""

    SUCCESS = TaskInstanceState.SUCCESS
    RUNNING = TaskInstanceState.RUNNING
    FAILED = TaskInstanceState.FAILED
    QUEUED = TaskInstanceState.QUEUED
    SKIPPED = TaskInstanceState.SKIPPED
    UP_FOR_RETRY = TaskInstanceState.UP_FOR_RETRY
    UPSTREAM_FAILED = TaskInstanceState.UPSTREAM_FAILED
    SCHEDULED = TaskInstanceState.SCHEDULED
    REMOVED = TaskInstanceState.REMOVED
    DEFERRED = TaskInstanceState.DEFERRED
    NONE = None
