"""How are sessions drawn?

Every function takes a small frame of ``session_numbers`` and gives an altair chart. Text and background are left to the
theme, so that the charts can be read on white and on black. Days and hours are UTC and say so.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import altair as alt
import polars as pl
import session_numbers as numbers

WIDTH: Final = 600
_GREY: Final = "#808080"  # of lines and words inside a plot: between the two backgrounds
#: Colours of providers in the order of their names; each has a contrast of 3 or more against white and against black.
_COLOURS: Final = ("#4a86c9", "#c9771a", "#009e73", "#c2558f", "#8a8a2b", "#8c6bb1", "#b5544f", "#3b95a8")
#: Beyond this many days a bar stands for a week.
_DAYS: Final = 120
#: So many days are shown at least: one day alone must not fill the plot.
_LEAST_DAYS: Final = 14


def _title(text: str, below: str) -> alt.Title:
    return alt.Title(text, subtitle=below, anchor="start", offset=8, subtitleColor=_GREY)


def _axis(**more: Any) -> alt.Axis:
    return alt.Axis(gridColor=_GREY, gridOpacity=0.3, **more)


def _counts(high: int, room: float = 1.0) -> dict[str, Any]:
    """Scale and axis of whole numbers from 0: ten ticks at most; ``room`` is left for words behind the longest bar."""
    step = next(size * 10**power for power in range(12) for size in (1, 2, 5) if high <= 10 * size * 10**power)
    scale = alt.Scale(domain=[0, max(high, 1) * room], nice=False)
    return {"scale": scale, "axis": _axis(values=list(range(0, high + 1, step)), format=",d")}


def days_chart(days: pl.DataFrame) -> alt.Chart:
    """Turns of a person per day or week, stacked by provider. Columns: day, provider, sessions, turns."""
    first, last = days["day"].min(), days["day"].max()
    length = "1w" if (last - first).days >= _DAYS else "1d"
    bars = days.group_by(pl.col("day").dt.truncate(length), "provider").agg(pl.sum("sessions", "turns"))
    bars = bars.with_columns(end=pl.col("day").dt.offset_by(length)).sort("day", "provider")
    bars = bars.with_columns(top=pl.col("turns").cum_sum().over("day")).with_columns(bottom=pl.col("top") - pl.col("turns"))
    end = max(bars["end"].max(), bars["day"].min() + timedelta(days=_LEAST_DAYS))
    names = bars["provider"].unique().sort().to_list()
    colour = alt.Color(
        "provider:N",
        title=None,
        legend=alt.Legend(orient="top", symbolType="square", offset=4) if len(names) > 1 else None,
        scale=alt.Scale(domain=names, range=[_COLOURS[number % len(_COLOURS)] for number in range(len(names))]),
    )
    what = "week" if length == "1w" else "day"
    span = alt.Scale(domain=[bars["day"].min().isoformat(), end.isoformat()], type="utc", nice=False)
    return (
        alt.Chart(bars, width=WIDTH, height=180, title=_title(f"Turns by {what}", f"What people asked for; a {what} is one in UTC"))
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            alt.X("day:T", title=None, scale=span, axis=_axis(format="%d %b %Y", labelOverlap=True, tickCount=8)),
            alt.X2("end:T"),
            alt.Y("bottom:Q", title="turns", **_counts(int(bars["top"].max() or 1))),
            alt.Y2("top:Q"),
            colour,
            tooltip=[alt.Tooltip(f"{field}:N") for field in ("day", "provider", "sessions", "turns")],
        )
    )


def hours_chart(hours: pl.DataFrame) -> alt.LayerChart:
    """Turns of a person by weekday and hour. Columns: weekday, hour, turns."""
    high = int(hours["turns"].max() or 1)
    base = alt.Chart(hours, width=WIDTH, height=alt.Step(22)).encode(
        alt.X("hour:O", title="hour, UTC", scale=alt.Scale(domain=list(range(24))), axis=alt.Axis(labelAngle=0, ticks=False)),
        alt.Y("weekday:N", title=None, scale=alt.Scale(domain=list(numbers.WEEKDAYS)), axis=alt.Axis(ticks=False)),
    )
    cells = base.mark_circle(opacity=0.9, color=_COLOURS[0]).encode(
        alt.Size("turns:Q", scale=alt.Scale(domain=[0, high], range=[0, 380]), legend=None),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("weekday", "hour", "turns")],
    )
    below = f"The largest circle stands for {high:,} turn{'' if high == 1 else 's'}"
    return alt.layer(cells).properties(title=_title("When people ask", below))


def bars_chart(rows: pl.DataFrame, column: str, title: str, below: str, axis: str) -> alt.LayerChart:
    """Bars of whole numbers with the number behind each. Columns: name, ``column``; in the order to be drawn."""
    names = alt.Axis(labelLimit=220, ticks=False, domain=False, grid=False)
    base = alt.Chart(rows, width=WIDTH - 100, height=alt.Step(22)).encode(
        alt.Y("name:N", scale=alt.Scale(domain=rows["name"].to_list()), title=None, axis=names)
    )
    length = alt.X(f"{column}:Q", title=axis, **_counts(int(rows[column].max() or 1), 1.12))
    bars = base.mark_bar(color=_COLOURS[0]).encode(length, tooltip=[alt.Tooltip("name:N"), alt.Tooltip(f"{column}:N")])
    words = base.mark_text(align="left", dx=4, color=_GREY).encode(length, alt.Text(f"{column}:Q", format=",d"))
    return alt.layer(bars, words).properties(title=_title(title, below))


def _lumped(rows: pl.DataFrame, name: str, column: str, most: int) -> pl.DataFrame:
    """The ``most`` first rows by name, the others as one."""
    rows = rows.select(pl.col(name).alias("name"), column)
    if rows.height <= most + 1:
        return rows
    rest = rows.tail(rows.height - most)
    return pl.concat([rows.head(most), pl.DataFrame([[f"{rest.height} others"], [rest[column].sum()]], schema=rows.schema)])


def charts(tables: dict[str, pl.DataFrame], most: int) -> dict[str, alt.TopLevelMixin]:
    """Every chart that these tables give, by name; the ``most`` first projects by their names."""
    found: dict[str, alt.TopLevelMixin] = {}
    if tables["by_day"].height:
        found["by_day"] = days_chart(tables["by_day"])
    if tables["by_hour"].height:
        found["by_hour"] = hours_chart(tables["by_hour"])
    projects = tables["by_project"].filter(pl.col("prompts") > 0)
    if projects.height:
        rows = _lumped(projects, "project", "prompts", most)
        found["by_project"] = bars_chart(rows, "prompts", "Prompts by project", "Of sessions that a person opened", "prompts")
    if tables["by_prompts"].height:
        rows = tables["by_prompts"].select(name=pl.col("group"), sessions="sessions")
        found["by_prompts"] = bars_chart(rows, "sessions", "How long sessions are", "Sessions by number of prompts", "sessions")
    models = tables["by_model"].filter(pl.col("output_tokens").is_not_null()).sort("output_tokens", descending=True)
    if models.height:
        models = models.with_columns(name=pl.format("{} ({})", "model", "provider"))
        below = "Reasoning included; models whose log reports no tokens are not drawn"
        rows = _lumped(models, "name", "output_tokens", most)
        found["by_model"] = bars_chart(rows, "output_tokens", "Output tokens by model", below, "tokens")
    return {name: chart.configure_view(stroke=None) for name, chart in found.items()}
