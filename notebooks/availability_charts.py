"""How is availability drawn?

Every function takes a small frame and gives an altair chart. Times are milliseconds since a turn began. Text and
background are left to the theme, so that the charts can be read on white and on black; what a heartbeat says is told by
shape as well as by colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import availability_numbers as numbers
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH: Final = 600
_GREY: Final = "#808080"  # of lines and words inside a plot: between the two backgrounds
#: Colours of outcomes: what was answered, what the provider is to blame for, and what it is not.
_OUTCOMES: Final = {
    "answered": "#009e73",
    "unavailable": "#c2558f",
    "queue timeout": "#c9771a",
    "response timeout": "#4a86c9",
    "continuation timeout": "#7d6bb8",
    "protocol error": "#b85450",
    "provider error": "#a0703c",
    "cancelled": "#8a8a8a",
    "not told": "#b0b0b0",
}
_MARKS: Final = {
    "acknowledged": ("diamond", "#4a86c9"),
    "first model event": ("triangle-up", "#7d6bb8"),
    "first thinking": ("square", "#c9771a"),
    "first token": ("circle", "#009e73"),
    "end": ("cross", _GREY),
}
_WORDS: Final = {"not available": ("diamond", "#8c2f62"), "queued": ("circle", "#c9771a"), "ready": ("triangle-up", "#009e73")}
_STEPS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


def _title(text: str, below: str) -> alt.Title:
    return alt.Title(text, subtitle=below, anchor="start", offset=8, subtitleColor=_GREY)


def _seconds(high: float, width: int = WIDTH, room: int = 16) -> tuple[alt.Scale, alt.Axis]:
    """A scale from 0 over milliseconds, and an axis of seconds with a round tick every 60 pixels or more."""
    high = max(high, 100.0)
    step = next((step for step in _STEPS if high / 1000 / step <= width / 60), _STEPS[-1])
    ticks = [1000 * step * number for number in range(int(high / 1000 / step) + 1)]
    label = "datum.value == 0 ? '0' : format(datum.value / 1000, ',~r') + ' s'"
    axis = alt.Axis(values=ticks, labelExpr=label, gridColor=_GREY, gridOpacity=0.3)
    return alt.Scale(domain=[0, high * width / (width - room)], nice=False), axis


def _rows(order: Sequence[str]) -> alt.Y:
    axis = alt.Axis(labelLimit=260, ticks=False, domain=False, grid=False)
    return alt.Y("row:N", scale=alt.Scale(domain=list(order)), title=None, axis=axis)


def _shapes(field: str, kinds: dict[str, tuple[str, str]], present: Sequence[str]) -> dict[str, alt.Shape | alt.Color]:
    """Shape and colour of one field, with one legend."""
    shown = [name for name in kinds if name in present]
    legend = alt.Legend(orient="top", offset=4, symbolSize=70, symbolStrokeWidth=2)
    return {
        "shape": alt.Shape(
            f"{field}:N", title=None, legend=legend, scale=alt.Scale(domain=shown, range=[kinds[name][0] for name in shown])
        ),
        "color": alt.Color(
            f"{field}:N", title=None, legend=legend, scale=alt.Scale(domain=shown, range=[kinds[name][1] for name in shown])
        ),
    }


def timeline_chart(turns: pl.DataFrame, beats: pl.DataFrame) -> alt.LayerChart:
    """A row per turn: from its beginning to its end, the heartbeats of the queue on it, and the deadline.

    Columns of turns: row, outcome, terminal_ms, last_message_ms, deadline_ms; of beats: row, elapsed_ms, word.
    """
    bars = turns.with_columns(end_ms=pl.coalesce("terminal_ms", "last_message_ms")).drop_nulls("end_ms")
    high = float(bars["end_ms"].max() or 0)
    limits = bars.select("row", "deadline_ms").filter(pl.col("deadline_ms") < 1.2 * high)  # far ones tell nothing
    high = max(high, float(limits["deadline_ms"].max() or 0))
    scale, axis = _seconds(high, room=70)
    order = turns["row"].to_list()
    shown = [name for name in _OUTCOMES if name in bars["outcome"]]
    colour = alt.Color(
        "outcome:N",
        title=None,
        scale=alt.Scale(domain=shown, range=[_OUTCOMES[name] for name in shown]),
        legend=alt.Legend(orient="top", symbolType="square", offset=4),
    )
    base = alt.Chart(bars, width=WIDTH, height=alt.Step(24)).encode(_rows(order))
    length = base.mark_bar(height=8, opacity=0.75).encode(
        alt.X("end_ms:Q", scale=scale, axis=axis, title="since the turn began"),
        colour,
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("row", "outcome", "end_ms", "deadline_ms")],
    )
    words = bars.with_columns(word=pl.col("end_ms").map_elements(numbers.spoken, return_dtype=pl.String))
    ends = alt.Chart(words).mark_text(align="left", dx=6, color=_GREY).encode(
        alt.X("end_ms:Q", scale=scale), _rows(order), text="word:N"
    )
    deadline = alt.Chart(limits).mark_tick(color=_GREY, thickness=2, height=18).encode(
        alt.X("deadline_ms:Q", scale=scale), _rows(order)
    )
    present = beats["word"].unique().to_list()
    heart = alt.Chart(beats).mark_point(filled=True, size=55, opacity=1, stroke="white", strokeWidth=0.7).encode(
        alt.X("elapsed_ms:Q", scale=scale),
        _rows(order),
        **_shapes("word", _WORDS, present),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("row", "elapsed_ms", "status", "word", "queue_wait_ms", "queue_count")],
    )
    below = "Bars: to the end of the turn. Points: what the queue said. Grey stroke: the deadline, which no heartbeat extends"
    layers = [length, deadline, ends, *([heart] if beats.height else [])]
    return (
        alt.layer(*layers)
        .resolve_scale(color="independent", shape="independent")
        .properties(title=_title("Turns from beginning to end", below))
    )


def milestones_chart(marks: pl.DataFrame) -> alt.LayerChart:
    """When answered turns were acknowledged, thought and spoke. Columns: row, mark, elapsed_ms."""
    order = marks["row"].unique(maintain_order=True).to_list()
    scale, axis = _seconds(float(marks["elapsed_ms"].max() or 0))
    base = alt.Chart(marks, width=WIDTH, height=alt.Step(28)).encode(_rows(order))
    reach = base.mark_rule(color=_GREY, opacity=0.6).encode(
        alt.X("min(elapsed_ms):Q", scale=scale, axis=axis, title="since the turn began"), alt.X2("max(elapsed_ms)")
    )
    # the first event of a model and its first thinking often stand close together: the larger one below
    size = alt.condition(alt.datum.mark == "first model event", alt.value(260), alt.value(70))
    points = base.mark_point(filled=True, opacity=1, strokeWidth=2).encode(
        alt.X("elapsed_ms:Q", scale=scale, axis=axis),
        size=size,
        **_shapes("mark", _MARKS, marks["mark"].unique().to_list()),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("row", "mark", "elapsed_ms")],
    )
    below = "An acknowledgement of the runtime is no token, and thinking is none either"
    return alt.layer(reach, points).properties(title=_title("How answered turns begin", below))


def outcomes_chart(outcomes: pl.DataFrame) -> alt.LayerChart:
    """Turns by outcome, a row per batch and model. Columns: batch_id, model, outcome, outcome_no, turns."""
    outcomes = outcomes.with_columns(row=pl.format("{}, {}", pl.col("batch_id").str.head(19), "model"))
    order = outcomes["row"].unique(maintain_order=True).to_list()
    shown = [name for name in _OUTCOMES if name in outcomes["outcome"]]
    colour = alt.Color(
        "outcome:N",
        title=None,
        scale=alt.Scale(domain=shown, range=[_OUTCOMES[name] for name in shown]),
        legend=alt.Legend(orient="top", symbolType="square", offset=4),
    )
    high = int(outcomes.group_by("row").agg(pl.sum("turns"))["turns"].max() or 1)
    step = max(1, -(-high // 10))
    axis = alt.Axis(values=list(range(0, high + 1, step)), format="d", gridColor=_GREY, gridOpacity=0.3)
    below = "Unavailable, queue and response timeouts are the provider's; the others are not counted against it"
    return (
        alt.Chart(outcomes, width=WIDTH, height=alt.Step(24), title=_title("How turns ended", below))
        .mark_bar()
        .encode(
            alt.X("turns:Q", stack="zero", axis=axis, title="turns", scale=alt.Scale(domain=[0, high], nice=False)),
            _rows(order),
            colour,
            alt.Order("outcome_no:Q"),
            [alt.Tooltip(f"{field}:N") for field in ("row", "outcome", "turns")],
        )
    )


def queue_chart(beats: pl.DataFrame) -> alt.LayerChart:
    """The wait that the queue states against the time since the turn began: a line per turn.

    Columns: row, elapsed_ms, queue_wait_ms, word, queue_count.
    """
    scale, axis = _seconds(float(beats["elapsed_ms"].max() or 0))
    high, up = _seconds(float(beats["queue_wait_ms"].max() or 0), 260)
    base = alt.Chart(beats, width=WIDTH, height=260).encode(
        alt.X("elapsed_ms:Q", scale=scale, axis=axis, title="since the turn began"),
        alt.Y("queue_wait_ms:Q", scale=high, axis=up, title="waited in the queue, as it says"),
    )
    lines = base.mark_line(color=_GREY, opacity=0.5).encode(alt.Detail("row:N"))
    points = base.mark_point(filled=True, size=60, opacity=0.9).encode(
        **_shapes("word", _WORDS, beats["word"].unique().to_list()),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("row", "elapsed_ms", "queue_wait_ms", "queue_count", "word")],
    )
    below = "A line per turn; a turn that waits from its beginning runs along the diagonal"
    return alt.layer(lines, points).properties(title=_title("Waiting in the queue", below))


def charts(turns: pl.DataFrame, beats: pl.DataFrame, most: int) -> dict[str, alt.TopLevelMixin]:
    """Every chart that these turns and heartbeats give, by name; the latest ``most`` turns are drawn one by one."""
    found: dict[str, alt.TopLevelMixin] = {}
    if not turns.height:
        return found
    found["outcomes"] = outcomes_chart(numbers.outcomes(turns))
    last = numbers.named(turns.tail(most))
    beats = beats.drop_nulls("elapsed_ms").join(last.select("batch_id", "run", "turn", "row"), on=["batch_id", "run", "turn"])
    timed = last.filter(pl.coalesce("terminal_ms", "last_message_ms").is_not_null())
    if timed.height:
        found["timeline"] = timeline_chart(timed, beats)
    marks = numbers.milestones(timed.filter(pl.col("outcome") == "answered"))
    if marks.height:
        found["milestones"] = milestones_chart(marks)
    waits = beats.drop_nulls("queue_wait_ms")
    if waits.height:
        found["queue"] = queue_chart(waits)
    return {name: chart.configure_view(stroke=None) for name, chart in found.items()}
