"""How is tool time drawn?

Every function takes a frame of ``tool_latency`` that is small already (binned or grouped: a chart carries hundreds of
rows, not the calls) and gives an altair chart. Durations are milliseconds. Text and background are left to the theme,
so that the charts can be read on white and on black; the four colours have a contrast of 3 or more against both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import altair as alt
import latency_numbers as numbers
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Kinds of time, in the order of the stacks: how well a call is timed, or that a person probably had to act first.
KINDS: Final = {"exact": "#009e73", "good": "#4a86c9", "bound": "#c9771a", "human wait": "#c2558f"}
WIDTH: Final = 560
_REASONS: Final = {
    "ten minutes or more": KINDS["human wait"],
    "question to the person": KINDS["exact"],
    "denied by the person": KINDS["bound"],
    "gap beside the call": KINDS["good"],
}

_GREY: Final = "#808080"  # of lines and words inside a plot: between the two backgrounds
# Ticks of a logarithmic time axis, where people round: 1, 10, 100 ms, 1, 10 s, 1, 10 min, 1, 10 h, 4 d and so on.
_TICKS: Final = (
    *(1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000),
    *(4 * 10**decade * 86_400_000 for decade in range(6)),
)
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_STEPS: Final = (
    *(step * 10**decade for decade in range(3) for step in (1, 2, 5)),
    *(step * unit for unit in (1_000, 60_000) for step in (1, 2, 5, 10, 15, 30)),
    *(step * 3_600_000 for step in (1, 2, 4, 8, 12)),
    *(step * 10**decade * 86_400_000 for decade in range(9) for step in (1, 2, 5)),
)
_SPOKEN: Final = (
    "".join(f"datum.value >= {size} ? format(datum.value / {size}, '~g') + ' {unit}' : " for size, unit in _UNITS)
    + "datum.value == 0 ? '0' : format(datum.value, '~g') + ' ms'"
)
_MARKS: Final = {"p50": "circle", "p90": "square", "p95": "diamond", "p99": "triangle-right"}


def _log(values: pl.Series, *more: pl.Series) -> tuple[alt.Scale, alt.Axis]:
    """A logarithmic scale over whole decades around values (milliseconds; below 1 is drawn at 1), and its axis."""
    low = min(float(series.min() or 1) for series in (values, *more))
    high = max(float(series.max() or 1) for series in (values, *more))
    ends = [1.0, 10.0]
    while ends[0] * 10 <= low:
        ends[0] *= 10
    while ends[1] < max(high, ends[0] * 10):
        ends[1] *= 10
    ticks = [tick for tick in _TICKS if ends[0] <= tick <= ends[1]]
    return alt.Scale(type="log", domain=ends, nice=False, padding=0), _axis(ticks, _SPOKEN)


def _axis(ticks: Sequence[float], label: str) -> alt.Axis:
    return alt.Axis(values=ticks, labelExpr=label, gridColor=_GREY, gridOpacity=0.3)


def _linear(values: pl.Series, width: int) -> tuple[alt.Scale, alt.Axis]:
    """A scale from 0 over values (milliseconds) with room for a word behind the longest bar, and an axis with a round
    tick every 60 pixels or more.
    """
    high = float(values.max() or 1)
    step = next(step for step in (*_STEPS, high) if high / step <= width // 60)
    ticks = [step * number for number in range(int(high / step) + 1)]
    size, unit = next(((size, unit) for size, unit in _UNITS if step % size == 0), (1, "ms"))
    label = f"datum.value == 0 ? '0' : format(datum.value / {size}, ',~r') + ' {unit}'"
    return alt.Scale(domain=[0, high * width / (width - 64)], nice=False), _axis(ticks, label)


def _bars(
    frame: pl.DataFrame,
    value: str,
    *,
    order: Sequence[str],
    title: str,
    colour: alt.Color,
    width: int,
    labels: bool = True,
) -> alt.LayerChart:
    """Stacked bars, one row for each name of order (column ``name``), with the spoken sum behind each."""
    totals = frame.group_by("name").agg(pl.sum(value))
    scale, axis = _linear(totals[value], width)
    names = alt.Axis(labelLimit=180, ticks=False, domain=False, labels=labels)
    rows = alt.Y("name:N", scale=alt.Scale(domain=list(order)), title=None, axis=names)
    words = totals.with_columns(total=pl.col(value).map_elements(numbers.spoken, return_dtype=pl.String))
    tooltip = [alt.Tooltip(f"{field}:N") for field in frame.columns if field != "stack_no"]
    sums = alt.Chart(words).mark_text(align="left", dx=4, color=_GREY)
    sums = sums.encode(alt.X(f"{value}:Q", scale=scale), rows, text="total:N")
    lengths = alt.X(f"{value}:Q", stack="zero", title=title, scale=scale, axis=axis)
    bars = alt.Chart(frame).mark_bar().encode(lengths, rows, colour, alt.Order("stack_no:Q"), tooltip)
    return alt.layer(bars, sums, width=width, height=alt.Step(20))


def _kinds(present: Sequence[str]) -> alt.Color:
    shown = [kind for kind in KINDS if kind in present]
    return alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=shown, range=[KINDS[kind] for kind in shown]),
        legend=alt.Legend(orient="top", symbolType="square", offset=4),
    )


def _title(text: str, below: str) -> alt.Title:
    return alt.Title(text, subtitle=below, anchor="start", offset=8, subtitleColor=_GREY)


def _rows(order: Sequence[str]) -> alt.Y:
    axis = alt.Axis(labelLimit=260, ticks=False, domain=False, grid=False)
    return alt.Y("row:N", scale=alt.Scale(domain=list(order)), title=None, axis=axis)


def time_chart(time: pl.DataFrame, by: str, order: Sequence[str]) -> alt.HConcatChart:
    """Wall time by tool or model, stacked by kind; human waits beside it on an axis of their own, which they would
    otherwise rule. Columns: by, kind, kind_no, calls, wall_ms.
    """
    time = time.select(pl.col(by).alias("name"), "kind", "calls", "wall_ms", pl.col("kind_no").alias("stack_no"))
    colour = _kinds(time["kind"].unique().to_list())
    waits = time["kind"] == "human wait"
    sides = {"wall time, tool at work": time.filter(~waits), "wall time, person awaited": time.filter(waits)}
    sides = {title: side for title, side in sides.items() if side.height}
    widths = [WIDTH] if len(sides) == 1 else [WIDTH * 3 // 5, WIDTH * 2 // 5]
    panels = [
        _bars(side, "wall_ms", order=order, title=title, colour=colour, width=width, labels=number == 0)
        for number, ((title, side), width) in enumerate(zip(sides.items(), widths, strict=True))
    ]
    below = "Wall time: where calls of a turn overlap, the moment counts once, for the call that started first"
    return alt.hconcat(*panels, title=_title(f"Where tool time goes, by {by}", below), spacing=16)


def spread_chart(bins: pl.DataFrame, by: str) -> alt.FacetChart:
    """A histogram of latency for each tool or model, on a logarithmic axis, stacked by kind.

    Columns: label, kind, low_ms and high_ms (ends of a bin), calls, bottom and top (of the bar in the stack; a label's
    fullest bin is 1 high) and p50_ms, p95_ms (equal in all rows of a label; NULL where no call measures them).
    """
    scale, axis = _log(bins["low_ms"], bins["high_ms"])
    base = alt.Chart(width=WIDTH - 40, height=44)
    height = alt.Scale(domain=[0, 1.4], nice=False)
    bars = base.mark_rect().encode(
        alt.X("low_ms:Q", scale=scale, axis=axis, title="latency, logarithmic"),
        alt.X2("high_ms:Q"),
        alt.Y("bottom:Q", axis=None, scale=height),
        alt.Y2("top:Q"),
        _kinds(bins["kind"].unique().to_list()),
        [alt.Tooltip(f"{field}:N") for field in ("label", "kind", "low_ms", "high_ms", "calls")],
    )
    marks = [
        base.mark_point(shape="triangle-down", size=50, color=_GREY, filled=filled, opacity=1).encode(
            alt.X(f"mean({column}):Q", scale=scale), alt.Y(datum=1.22, scale=height)
        )
        for column, filled in (("p50_ms", True), ("p95_ms", False))
    ]
    row = alt.Row(
        "label:N",
        sort=bins["label"].unique(maintain_order=True).to_list(),
        title=None,
        header=alt.Header(labelAngle=0, labelAlign="left", labelOrient="left", labelLimit=220, labelPadding=6),
    )
    below = "Calls per bin, their number in brackets. Triangles: p50 filled, p95 hollow, of exact and good calls"
    return (
        alt.layer(bars, *marks, data=bins)
        .facet(row=row, spacing=2)
        .properties(title=_title(f"How long calls take, by {by}", below))
    )


def tails_chart(points: pl.DataFrame, by: str) -> alt.LayerChart:
    """p50 to p99 by tool or model on a logarithmic axis; a row more where suspected human waits change them.

    Columns: row (its label), waits (are they in it?), percentile, latency_ms; in the order to be drawn.
    """
    scale, axis = _log(points["latency_ms"])
    colour = alt.Color(
        "waits:N",
        legend=None,
        scale=alt.Scale(domain=[False, True], range=[KINDS["good"], KINDS["human wait"]]),
    )
    base = alt.Chart(points, width=WIDTH - 40, height=alt.Step(22)).encode(
        _rows(points["row"].unique(maintain_order=True).to_list()), colour
    )
    reach = base.mark_rule(strokeWidth=2).encode(
        alt.X("min(latency_ms):Q", scale=scale, axis=axis, title="latency, logarithmic"), alt.X2("max(latency_ms)")
    )
    shape = alt.Shape(
        "percentile:N",
        title=None,
        scale=alt.Scale(domain=list(_MARKS), range=list(_MARKS.values())),
        legend=alt.Legend(orient="top", offset=4, symbolFillColor=_GREY, symbolStrokeColor=_GREY),
    )
    tooltip = [alt.Tooltip("row:N"), alt.Tooltip("percentile:N"), alt.Tooltip("latency_ms:Q", format=",.0f")]
    marks = [
        base.transform_filter(alt.datum.percentile == name)
        .mark_point(filled=True, size=60, opacity=1)
        .encode(alt.X("latency_ms:Q", scale=scale, axis=axis), shape, tooltip=tooltip)
        for name in reversed(_MARKS)
    ]
    below = "Exact and good calls that ended ok or in an error, their number in brackets; suspected human waits apart"
    return alt.layer(reach, *marks).properties(title=_title(f"Tails, by {by}", below))


def parallel_chart(turns: pl.DataFrame) -> alt.LayerChart:
    """Union against sum of a turn's calls, both logarithmic; a circle stands for the turns of one cell.

    Columns: sum_ms, wall_ms (centre of the cell), turns, parallel ('in parallel' or 'one after another').
    """
    scale, axis = _log(turns["sum_ms"], turns["wall_ms"])
    ends = [{"sum_ms": end, "wall_ms": end} for end in scale["domain"]]
    even = (
        alt.Chart(alt.Data(values=ends))
        .mark_line(color=_GREY, strokeDash=[4, 3])
        .encode(alt.X("sum_ms:Q", scale=scale), alt.Y("wall_ms:Q", scale=scale))
    )
    most = int(turns["turns"].max() or 1)
    size = alt.Size(
        "turns:Q",
        scale=alt.Scale(domain=[0, most], range=[30, 400]),
        legend=alt.Legend(title="turns", values=sorted({1, (most + 1) // 2, most}), symbolFillColor=_GREY),
    )
    colour = alt.Color(
        "parallel:N",
        title="calls",
        scale=alt.Scale(domain=["one after another", "in parallel"], range=[KINDS["good"], KINDS["bound"]]),
    )
    dots = (
        alt.Chart(turns, width=WIDTH - 160, height=WIDTH - 200)
        .mark_circle(opacity=0.9, stroke=_GREY, strokeWidth=0.5)
        .encode(
            alt.X("sum_ms:Q", scale=scale, axis=axis, title="sum of the calls"),
            alt.Y("wall_ms:Q", scale=scale, axis=axis, title="wall time (union)"),
            size,
            colour,
            tooltip=["turns:Q", alt.Tooltip("sum_ms:Q", format=",.0f"), alt.Tooltip("wall_ms:Q", format=",.0f")],
        )
    )
    below = "A turn below the line ran calls at the same time; its wall time is what was waited for"
    return alt.layer(even, dots).properties(title=_title("What parallel calls save", below))


def waits_chart(waits: pl.DataFrame) -> alt.LayerChart:
    """Suspected human waits by tool and reason. Columns: tool, reason, calls, total_ms; in the order to be drawn."""
    shown = [reason for reason in _REASONS if reason in waits["reason"]]
    colour = alt.Color(
        "reason:N",
        title=None,
        scale=alt.Scale(domain=shown, range=[_REASONS[reason] for reason in shown]),
        legend=alt.Legend(orient="top", symbolType="square", labelLimit=240, offset=4),
    )
    stack_no = pl.col("reason").replace_strict({reason: number for number, reason in enumerate(shown)})
    waits = waits.select(pl.col("tool").alias("name"), "reason", "calls", "total_ms", stack_no=stack_no)
    order = waits["name"].unique(maintain_order=True).to_list()
    bars = _bars(waits, "total_ms", order=order, title="sum of the waits", colour=colour, width=WIDTH - 40)
    below = "A person probably had to act before the call could end"
    return bars.properties(title=_title("Suspected human waits", below))


def quality_chart(quality: pl.DataFrame) -> alt.LayerChart:
    """Median to p95 of exact, good and bound calls apart.

    Columns: tool, kind, calls, p50_ms, p95_ms; in the order to be drawn.
    """
    row = pl.format("{}, {} ({})", "tool", "kind", "calls")
    quality = quality.with_columns(pl.col("p50_ms", "p95_ms").clip(1), row=row)
    scale, axis = _log(quality["p50_ms"], quality["p95_ms"])
    base = alt.Chart(quality, width=WIDTH - 40, height=alt.Step(20)).encode(
        _rows(quality["row"].to_list()),
        _kinds(quality["kind"].unique().to_list()),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("tool", "kind", "calls", "p50_ms", "p95_ms")],
    )
    reach = base.mark_rule(strokeWidth=3).encode(
        alt.X("p50_ms:Q", scale=scale, axis=axis, title="latency from p50 to p95, logarithmic"), alt.X2("p95_ms:Q")
    )
    middle = base.mark_point(filled=True, size=70, opacity=1).encode(alt.X("p50_ms:Q", scale=scale, axis=axis))
    below = "Bound: flushed together with other results (the most it took), or a launch into the background"
    return alt.layer(reach, middle).properties(title=_title("By quality of the timing", below))


def charts(calls: pl.DataFrame, turns: pl.DataFrame, most: int) -> dict[str, alt.TopLevelMixin]:
    """Every chart that these calls and turns give, by name; the ``most`` first tools and models by their names."""
    found: dict[str, alt.TopLevelMixin] = {}
    for by in ("tool", "model") if calls.height else ():
        some = numbers.lumped(calls, by, most)
        order = some[by].unique(maintain_order=True).to_list()
        found[f"time_by_{by}"] = time_chart(numbers.time_split(some, by), by, order)
        found[f"spread_by_{by}"] = spread_chart(numbers.binned(some), by)
        points = numbers.percentile_points(some, by)
        if points.height:
            found[f"tails_by_{by}"] = tails_chart(points, by)
    timed = numbers.lumped(calls.filter(pl.col("kind") != "human wait"), "tool", most)
    if timed.height:
        found["by_quality"] = quality_chart(numbers.timings(timed, "rank", "tool", "kind"))
    waits = numbers.lumped(calls.filter(pl.col("wait_reason").is_not_null()), "tool", most, "waited_ms")
    if waits.height:
        found["suspected_waits"] = waits_chart(numbers.suspected_waits(waits))
    if turns.height:
        found["parallel_calls"] = parallel_chart(numbers.turn_cells(turns))
    return {name: chart.configure_view(stroke=None) for name, chart in found.items()}
