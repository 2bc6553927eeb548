"""What was worked on?

A marimo notebook over the store (``SESSIONMART_DB``, else the default place; where there is no store, over the example
tree): ``marimo edit notebooks/sessions.py``, or ``marimo run`` to read only. As a plain script it prints its tables:
``python notebooks/sessions.py [--summary FILE.json] [--charts DIR]``; DIR gets the charts as PNG.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="What was worked on?")

with app.setup:
    import json
    import sys
    from pathlib import Path

    import marimo as mo
    import notebook_store
    import session_charts
    import session_numbers as numbers


@app.cell
def _():
    again = mo.ui.button(label="Read the store again")
    return (again,)


@app.cell
def _(again):
    again.value  # a press reads anew: a load replaces the file of the store
    connection, missing = notebook_store.opened("demo")
    every, _ = numbers.tables(connection)
    return connection, every, missing


@app.cell
def _(every):
    def _choice(column):
        return mo.ui.dropdown(["all", *every["sessions"][column].unique().sort()], value="all", label=column)

    provider, project = _choice("provider"), _choice("project")
    most = mo.ui.slider(3, 40, value=12, label="projects and models drawn by name", show_value=True)
    return most, project, provider


@app.cell
def _(again, missing, most, project, provider):
    mo.vstack(
        [
            mo.md("# What was worked on?"),
            mo.callout(mo.md(f"**This is example data**: {missing}."), kind="warn") if missing else mo.md(""),
            mo.hstack([provider, project, most, again], justify="start", wrap=True),
        ]
    )
    return


@app.cell
def _(connection, most, project, provider):
    _chosen = {"provider": provider.value, "project": project.value}
    frames, tables = numbers.tables(connection, {name: value for name, value in _chosen.items() if value != "all"})
    drawn = session_charts.charts(tables, most.value)
    return drawn, frames, tables


@app.cell
def _(tables):
    _is = tables["totals"].row(0, named=True)

    def _tile(name, label, caption=""):
        value = _is[name]
        return mo.stat("not reported" if value is None else f"{value:,}", label=label, caption=caption)

    mo.hstack(
        [
            _tile("sessions", "sessions", f"in {_is['projects']:,} projects"),
            _tile("prompts", "prompts", f"on {_is['days']:,} days"),
            mo.stat(numbers.spoken(_is["wall_ms"]), label="in turns", caption="from prompt to last record"),
            _tile("tool_calls", "tool calls", f"{_is['subagents']:,} sub-agents included"),
            _tile("output_tokens", "output tokens", "where the log reports them"),
        ],
        widths="equal",
    )
    return


@app.cell
def _(drawn, tables):
    def section(text, *names):
        """A heading, then the charts and tables of these names."""
        parts = [mo.md(text)]
        for name in names:
            if name in drawn:
                parts.append(drawn[name])
            if tables[name].height:
                parts.append(notebook_store.shown(tables[name], numbers.spoken))
            else:
                parts.append(mo.md(f"*{name.replace('_', ' ').capitalize()}: nothing of this choice.*"))
        return mo.vstack(parts)

    return (section,)


@app.cell
def _(section):
    section("## When", "by_day", "by_hour")
    return


@app.cell
def _(section):
    section("## Where", "by_project")
    return


@app.cell
def _(section):
    section(
        """
    ## Models

    Tokens, cost and credits are sums of what the logs report; an empty cell is "not reported", 0 is zero.
    """,
        "by_model",
    )
    return


@app.cell
def _(section):
    section("## How long, and how they ended", "by_prompts", "by_status")
    return


@app.cell
def _(tables):
    picked = notebook_store.shown(tables["longest_sessions"], numbers.spoken, selection="single", page_size=10)
    mo.vstack([mo.md("## Longest sessions\n\nBy the time in turns. Choose one to see where to read it."), picked])
    return (picked,)


@app.cell
def _(picked):
    mo.vstack([mo.plain_text(f"sessionmart show {row['session_id']}") for row in picked.value.to_dicts()])
    return


@app.cell
def _(drawn, missing, tables):
    # As a script: the tables on stdout, and the files that were asked for.
    if mo.app_meta().mode == "script":
        if missing:
            print(f"example data: {missing}", file=sys.stderr)
        for _name, _table in tables.items():
            notebook_store.printed(_name, _table.head(20), numbers.spoken)
        if _file := mo.cli_args().get("summary"):
            _rows = {name: table.to_dicts() for name, table in tables.items()}
            Path(_file).write_text(json.dumps(_rows, indent=1, default=str), encoding="utf-8")
        if _folder := mo.cli_args().get("charts"):
            Path(_folder).mkdir(parents=True, exist_ok=True)
            for _name, _chart in drawn.items():
                _chart.save(Path(_folder) / f"{_name}.png", scale_factor=2)
    return


if __name__ == "__main__":
    app.run()
