"""Where does tool time go?

A marimo notebook over the store (``SESSIONMART_DB``, else the default place; where there is no store, over the example
tree): ``marimo edit notebooks/tool_latency.py``, or ``marimo run`` to read only. As a plain script it prints its
tables: ``python notebooks/tool_latency.py [--summary FILE.json] [--charts DIR]``; DIR gets the charts as PNG.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Where does tool time go?")

with app.setup:
    import json
    import sys
    from pathlib import Path

    import latency_charts
    import latency_numbers as numbers
    import marimo as mo
    import notebook_store
    import polars as pl


@app.cell
def _():
    again = mo.ui.button(label="Read the store again")
    return (again,)


@app.cell
def _(again):
    again.value  # a press reads anew: a load replaces the file of the store
    connection, missing = notebook_store.opened("demo")
    every_call = numbers.credited(connection.sql(numbers.CALLS).pl())
    every_turn = connection.sql(numbers.TURNS).pl()
    every_status = connection.sql(numbers.COVERAGE).pl()
    return connection, every_call, every_status, every_turn, missing


@app.cell
def _(every_status):
    def _choice(column):
        return mo.ui.dropdown(["all", *every_status[column].unique().sort()], value="all", label=column)

    provider, project = _choice("provider"), _choice("project")
    most = mo.ui.slider(3, 40, value=12, label="tools and models drawn by name", show_value=True)
    return most, project, provider


@app.cell
def _(again, missing, most, project, provider):
    mo.vstack(
        [
            mo.md("# Where does tool time go?"),
            mo.callout(mo.md(f"**This is example data**: {missing}."), kind="warn") if missing else mo.md(""),
            mo.hstack([provider, project, most, again], justify="start", wrap=True),
        ]
    )
    return


@app.cell
def _(connection, every_call, every_status, every_turn, most, project, provider):
    _chosen = {"provider": provider.value, "project": project.value}
    _keep = [pl.col(column) == value for column, value in _chosen.items() if value != "all"]
    _calls, _turns, _coverage = (frame.filter(*_keep) for frame in (every_call, every_turn, every_status))
    slow = numbers.slowest(connection, _calls, 100)
    tables = numbers.tables(_calls, _coverage, _turns, slow)
    drawn = latency_charts.charts(_calls, _turns, most.value)
    return drawn, slow, tables


@app.cell
def _(drawn, tables):
    def section(text, *names):
        """A heading, then the charts and tables of these names."""
        parts = [mo.md(text)]
        for name in names:
            table = tables.get(name)
            if name in drawn:
                parts.append(drawn[name])
            elif table is None or table.is_empty():
                parts.append(mo.md(f"*{name.replace('_', ' ').capitalize()}: no call of this choice.*"))
            if table is not None and table.height:
                parts.append(notebook_store.shown(table, numbers.spoken))
        return mo.vstack(parts)

    return (section,)


@app.cell
def _(tables):
    _is = tables["totals"].row(0, named=True)
    _why = ", ".join(f"{calls:,} {status}" for status, calls in tables["untimed_calls"].iter_rows())

    def _tile(name, label, caption):
        return mo.stat(numbers.spoken(_is[name]), label=label, caption=caption)

    mo.vstack(
        [
            mo.hstack(
                [
                    _tile("wall_ms", "tool wall time", "overlapping calls count once"),
                    _tile("human_wait_ms", "of it for a person", "suspected"),
                    _tile("saved_ms", "saved by parallel calls", "sum of the calls less wall time"),
                    mo.stat(f"{_is['timed_calls']:,}", label="timed calls", caption=f"of {_is['calls']:,}"),
                    mo.stat(f"{_is['sessions']:,}", label="sessions", caption="with timed calls"),
                ],
                widths="equal",
            ),
            mo.md(f"Calls that nothing times: {_why}." if _why else ""),
        ]
    )
    return


@app.cell
def _(section, tables):
    _inner = numbers.spoken(tables["totals"]["subagent_wall_ms"][0])
    section(
        f"""
    ## By tool and by model

    Wall time adds up: where calls of a turn overlap, the one that started first has the moment. A call of *Agent* lasts
    as long as its sub-agent, whose own calls are counted too: {_inner}.
    """,
        "time_by_tool",
        "time_by_model",
    )
    return


@app.cell
def _(drawn):
    _spreads = [chart for name, chart in drawn.items() if name.startswith("spread")]
    mo.vstack([mo.md("## Distributions"), *_spreads])
    return


@app.cell
def _(section):
    section(
        """
    ## Tails

    Percentiles of exact and good calls that ended ok or in an error; `_no_wait` leaves out those that a person probably
    had to act on first. The p99 of fewer than a hundred calls is little more than the slowest of them.
    """,
        "tails_by_tool",
        "tails_by_model",
    )
    return


@app.cell
def _(section):
    section("## Parallel calls", "parallel_calls")
    return


@app.cell
def _(section):
    section(
        """
    ## Waits

    *Suspected* waits follow the rule of `human_gate_suspected`; a *told* wait stands in the log itself (`wait_ms`).
    """,
        "suspected_waits",
        "told_waits",
    )
    return


@app.cell
def _(section):
    section(
        """
    ## By quality

    All timed calls. *Bound*: the agent flushed the result together with others (the call took that long at most), or
    the call only launched something in the background. These stand in no percentile above.
    """,
        "by_quality",
        "by_source",
    )
    return


@app.cell
def _(slow):
    _columns = ["tool", "latency_ms", "kind", "head", "title", "session_id", "rel_path", "line_no", "call_key"]
    picked = notebook_store.shown(slow.select(_columns), numbers.spoken, selection="single", page_size=10)
    mo.vstack([mo.md("## Slowest calls\n\nChoose one to see all of it."), picked])
    return (picked,)


@app.cell
def _(picked, slow):
    def _whole(session_id, call_key):
        (call,) = slow.filter(session_id=session_id, call_key=call_key).to_dicts()
        lines = "\n".join(f"{name:<17} {value}" for name, value in call.items())
        return mo.plain_text(f"{lines}\n\nAll of the session: sessionmart show {session_id}")

    mo.vstack([_whole(*row) for row in picked.value.select("session_id", "call_key").iter_rows()])
    return


@app.cell
def _(drawn, missing, tables):
    # As a script: the tables on stdout, and the files that were asked for.
    if mo.app_meta().mode == "script":
        if missing:
            print(f"example data: {missing}", file=sys.stderr)
        for _name, _table in tables.items():
            notebook_store.printed(_name, _table.head(20).drop("title", "call_key", strict=False), numbers.spoken)
        if _file := mo.cli_args().get("summary"):
            _rows = {name: table.to_dicts() for name, table in tables.items()}
            Path(_file).write_text(json.dumps(_rows, indent=1), encoding="utf-8")
        if _folder := mo.cli_args().get("charts"):
            Path(_folder).mkdir(parents=True, exist_ok=True)
            for _name, _chart in drawn.items():
                _chart.save(Path(_folder) / f"{_name}.png", scale_factor=2)
    return


if __name__ == "__main__":
    app.run()
