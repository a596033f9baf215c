"""Ways to share out tasks among the instances of an application (``task.assignor.class``, KIP-924)."""

from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignors.application_state import ApplicationState, KafkaStreamsState
from pykstreams.runtime.membership.assignors.assignments import (
    AssignedTask,
    KafkaStreamsAssignment,
    TaskAssignment,
    TaskType,
)
from pykstreams.runtime.membership.assignors.rack_optimization import (
    MoveStandbyTaskPredicate,
    RackAwareOptimizationParams,
    optimize_rack_aware_active_tasks,
    optimize_rack_aware_standby_tasks,
)
from pykstreams.runtime.membership.assignors.standby_tasks import default_standby_task_assignment, identity_assignment
from pykstreams.runtime.membership.assignors.sticky import StickyTaskAssignor
from pykstreams.runtime.membership.assignors.task_assignor import (
    Assignment,
    AssignmentError,
    GroupAssignment,
    GroupSubscription,
    Subscription,
    TaskAssignor,
)
from pykstreams.runtime.membership.assignors.task_info import TaskInfo, TaskTopicPartition
from pykstreams.runtime.membership.assignors.validation import validate_task_assignment
from pykstreams.runtime.membership.process_id import ProcessId

__all__ = [
    "ApplicationState",
    "AssignedTask",
    "Assignment",
    "AssignmentConfigs",
    "AssignmentError",
    "GroupAssignment",
    "GroupSubscription",
    "KafkaStreamsAssignment",
    "KafkaStreamsState",
    "MoveStandbyTaskPredicate",
    "ProcessId",
    "RackAwareOptimizationParams",
    "StickyTaskAssignor",
    "Subscription",
    "TaskAssignment",
    "TaskAssignor",
    "TaskInfo",
    "TaskTopicPartition",
    "TaskType",
    "default_standby_task_assignment",
    "identity_assignment",
    "optimize_rack_aware_active_tasks",
    "optimize_rack_aware_standby_tasks",
    "validate_task_assignment",
]
