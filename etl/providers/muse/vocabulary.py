"""What are Muse's tools called elsewhere, and which of its records are events, or nothing but bookkeeping?

Names of records are ``runtime.session/<scope>/<event>`` for events, else the payload type. ``NOTED`` become events,
``SKIPPED`` are known and give no facts, with the reason; a name that ends in ``*`` stands for all that begin so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Names as real sessions have them; the shared vocabulary is that of the other providers.
TOOLS: Final[dict[str, str]] = {
    "read_file": "Read",
    "write_file": "Write",
    "edit_file": "Edit",
    "bash": "Bash",
    "shell": "Bash",
    "bash_input": "BashInput",
    "grep": "Grep",
    "search": "Grep",
    "glob": "Glob",
    "list_dir": "LS",
    "web_search": "WebSearch",
    "web_fetch": "WebFetch",
    "write_todos": "TodoWrite",
    "subagent_spawn": "Task",
    "subagent_wait": "TaskWait",
    "subagent_read_result": "TaskResult",
    "request_user_input": "AskUserQuestion",
}


@dataclass(frozen=True, slots=True)
class Noted:
    """The event that a record becomes: its kind, subtype, the field its summary is in, and the scalar fields kept."""

    kind: str
    subtype: str
    summary: str | None = None
    attrs: tuple[str, ...] = ()


NOTED: Final[dict[str, Noted]] = {
    "runtime.session/run/provider_tool_call_completed": Noted("provider_tool", "completed", None, ("name", "status")),
    "runtime.session/run/context_compaction_candidate": Noted("compaction", "candidate", "reason", ("trigger",)),
    "runtime.session/run/context_compaction_fallback": Noted("compaction", "fallback", "reason", ("trigger",)),
    "runtime.session/run/tool_results_cleared": Noted("compaction", "results_cleared", None, ("count", "trigger")),
    "runtime.session/run/resource_usage_sampled": Noted(
        "resource",
        "sample",
        None,
        ("cpu_self_ms", "cpu_children_ms", "rss_self_peak_bytes", "rss_tree_peak_bytes", "load_avg_1m_hundredths"),
    ),
    "runtime.session/run/hook_run_started": Noted("hook", "started", "command", ("hook_event", "hook_id")),
    "runtime.session/run/hook_run_terminal": Noted("hook", "terminal", "reason", ("hook_id", "outcome", "duration_ms")),
    "runtime.session/run/task_backgrounded": Noted("background", "backgrounded", None, ("task_id", "reason")),
    "runtime.session/run/run_retracted": Noted("turn", "retracted", "reason"),
    "runtime.session/run/turn_task_died": Noted("error", "turn_task_died", "reason", ("task_id",)),
    "runtime.session/run/inbox_delivery_anomaly": Noted("inbox", "anomaly", "reason", ("item_id",)),
    "session.end": Noted("session", "end", "exit_reason", ("uptime_ms",)),
    "session.resumed": Noted("session", "resumed"),
    "session.fork.created": Noted("session", "fork", None, ("source_session_id",)),
    "command.invoked": Noted("command", "invoked", "command"),
    "user_shell.command": Noted("shell", "command", "command"),
    "user_shell.result": Noted("shell", "result", None, ("exit_code",)),
    "context.compact.manual.*": Noted("compaction", "manual", "reason"),
}

SKIPPED: Final[dict[str, str]] = {
    "retained_frame": "a frame that holds records: they are counted one by one",
    "retained_marker": "stands for a record that was shown live and not kept; its number is no gap",
    "runtime.session/run/user_prompt_display": "repeats the prompt of the run's start",
    "runtime.session/run/inbox_item_drained": "the item was read when it was queued",
    "runtime.session/run/model_request_configured": "options of a request, no session content",
    "runtime.session/run/provider_request_options_configured": "options of a request, no session content",
    "runtime.session/run/model_input_trace_recorded": "digests of the model's input",
    "runtime.session/run/context_block_diagnostic": "bookkeeping of the context",
    "runtime.session/run/context_block_updated": "bookkeeping of the context",
    "runtime.session/run/context_projection_checkpoint": "bookkeeping of the context",
    "runtime.session/run/fork_child_seed_snapshot": "repeats what a forked child begins with",
    "runtime.session/run/task_stream_linked": "where a task is shown",
    "runtime.session/run/workflow_*": "progress of workflows; the usage in it adds up what the child's log states",
    "runtime.session/run/reminder_*": "the agent's own reminders; their sessions have logs",
    "runtime.session/run/skill_*": "which skills are at hand",
    "runtime.session/run/code_mode_*": "bookkeeping of code mode; its calls are committed like any others",
    "runtime.session/task/proposed": "the scheduler's bookkeeping, several tasks in a run",
    "runtime.session/task/accepted": "the scheduler's bookkeeping",
    "runtime.session/task/rejected": "the scheduler's bookkeeping",
    "runtime.session/task/side_effect_intent": "the scheduler's bookkeeping",
    "runtime.session/task/output": "live output; the result is committed with its batch",
    "runtime.session/task/tool_output_ref": "where live output was spilled; the result is committed with its batch",
    "runtime.session/approval/stage_requirement_resolved": "a step of an approval; the decision is read",
    "runtime.session/approval/policy_persistence_succeeded": "a decision was saved as a rule",
    "runtime.session/agent_tree_initialized/*": "an empty tree of agents",
    "runtime.session/security_mode/*": "a preference",
    "runtime.session.permission_format_declared": "format of the permissions",
    "runtime.session.permission_profile_committed": "which permission profile is in force, a preference",
    "runtime.session.task": "the scheduler's bookkeeping",
    "runtime.command_intake.*": "how a command reached the session; what it did is read",
    "runtime.user_intent.*": "later states of a prompt that was accepted",
    "runtime.retained_fact": "keeps a fact alive in the log",
    "runtime.mcp_tool_identity_catalog": "which MCP tools there are",
    "runtime.model_reconfigure.*": "steps of a change of the model; the completed one is read",
    "approval_wait.effect.*": "repeats the approval's own records",
    "session.*": "telemetry of the process",
}


def known(name: str) -> Noted | str | None:
    """The event a record becomes, the reason why it is skipped, or None: nobody has described it. The longest fitting
    name that ends in ``*`` speaks for records without an entry of their own.
    """
    found: Noted | str | None = NOTED.get(name) or SKIPPED.get(name)
    end = len(name)
    while found is None and end > 0:
        end -= 1
        found = NOTED.get(name[:end] + "*") or SKIPPED.get(name[:end] + "*")
    return found
