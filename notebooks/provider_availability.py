"""Was the provider there?

A marimo notebook over the evidence of a Qoder Bridge in the store (``SESSIONMART_DB``, else the default place; where there
is no store, over the five runs of the fixtures): ``marimo edit notebooks/provider_availability.py``, or ``marimo run`` to
read only. As a plain script it prints its tables: ``python notebooks/provider_availability.py [--summary FILE.json]
[--charts DIR]``; DIR gets the charts as PNG.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Was the provider there?")

with app.setup:
    import json
    import sys
    import tempfile
    from datetime import UTC, datetime
    from pathlib import Path

    import availability_charts
    import availability_numbers as numbers
    import marimo as mo
    import polars as pl

    import etl
    from etl import pipeline
    from etl.errors import StoreMissing
    from etl.providers.base import Environment


@app.function
def example_store(folder):
    """Path of a store of the five example runs beside this notebook (where they are), built in ``folder``."""
    tree = Path(__file__).parent.parent / "fixtures" / "qoder_bridge" / "five_runs" / "tree"
    request = pipeline.Request(
        db=str(Path(folder) / "runs.duckdb"),
        host="example",
        environment=Environment(str(folder), {}, "linux"),
        key=b"example",
        version=etl.__version__,
        roots={"qoder_bridge": (str(tree),) if tree.is_dir() else ()},
    )
    return pipeline.load(request, lambda: datetime.now(UTC)).db


@app.function
def opened():
    """A read-only connection, and why it is one to the example store (None: it is one to the user's)."""
    try:
        return etl.connect(), None
    except StoreMissing as missing:
        with tempfile.TemporaryDirectory() as folder:  # the open file outlives its name
            return etl.connect(example_store(folder)), str(missing)


@app.function
def spoken(frame):
    """The columns that are durations, as ``numbers.spoken`` says them."""
    return dict.fromkeys([name for name in frame.columns if name.endswith("_ms")], numbers.spoken)


@app.function
def printed(name, frame):
    """A frame as text on stdout, durations spoken; nothing where it has no row."""
    if frame.is_empty():
        return
    words = [
        pl.col(column).map_elements(say, return_dtype=pl.String, skip_nulls=False)
        for column, say in spoken(frame).items()
    ]
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=300,
        fmt_str_lengths=60,
        tbl_formatting="MARKDOWN",
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
    ):
        print(f"{name.replace('_', ' ')}\n\n{frame.with_columns(words)}\n")


@app.cell
def _():
    again = mo.ui.button(label="Read the store again")
    return (again,)


@app.cell
def _(again):
    again.value  # a press reads anew: a load replaces the file of the store
    connection, missing = opened()
    every_turn = connection.sql(numbers.TURNS).pl()
    every_beat = connection.sql(numbers.BEATS).pl()
    return connection, every_beat, every_turn, missing


@app.cell
def _(every_turn):
    batch = mo.ui.dropdown(["all", *every_turn["batch_id"].unique().sort()], value="all", label="batch")
    most = mo.ui.slider(5, 60, value=25, label="latest turns drawn one by one", show_value=True)
    return batch, most


@app.cell
def _(again, batch, every_turn, missing, most):
    _none = "There is no evidence of a Bridge in this store: `sessionmart load --root qoder_bridge=PATH` reads it."
    mo.vstack(
        [
            mo.md("# Was the provider there?"),
            mo.callout(mo.md(f"**This is example data**: {missing}."), kind="warn") if missing else mo.md(""),
            mo.callout(mo.md(_none), kind="info") if every_turn.is_empty() else mo.md(""),
            mo.hstack([batch, most, again], justify="start", wrap=True),
        ]
    )
    return


@app.cell
def _(batch, connection, every_beat, every_turn, most):
    _keep = [pl.col("batch_id") == batch.value] if batch.value != "all" else []
    _turns, _beats = (frame.filter(*_keep) for frame in (every_turn, every_beat))
    tables = numbers.tables(connection, _turns, _beats)
    drawn = availability_charts.charts(_turns, _beats, most.value)
    return drawn, tables


@app.cell
def _(drawn, tables):
    def section(text, charts=(), shown=()):
        """A heading, then these charts and tables, those that there are."""
        frames = [tables[name] for name in shown if tables[name].height]
        parts = [mo.ui.table(frame, format_mapping=spoken(frame), selection=None) for frame in frames]
        return mo.vstack([mo.md(text), *(drawn[name] for name in charts if name in drawn), *parts])

    return (section,)


@app.cell
def _(tables):
    _is = tables["totals"].row(0, named=True)
    mo.hstack(
        [
            mo.stat(f"{_is['answered']} of {_is['turns']}", label="turns answered", caption=f"{_is['runs']} runs"),
            mo.stat(str(_is["without_provider"]), label="turns without a provider", caption="never a fault of the Bridge"),
            mo.stat(str(_is["heartbeats"]), label="heartbeats of the queue", caption=f"{_is['heartbeats_ready']} say ready"),
            mo.stat(numbers.spoken(_is["median_ack_ms"]), label="acknowledged", caption="median; no token"),
            mo.stat(numbers.spoken(_is["median_first_token_ms"]), label="first token", caption="median"),
        ],
        widths="equal",
    )
    return


@app.cell
def _(section):
    section(
        """
    ## How turns ended

    The class of a silence is the last word of the queue before it: not available, still queued, or nothing of the kind.
    Output of the model clears it, and so does `ready`.
    """,
        ["outcomes"],
        ["availability", "runs"],
    )
    return


@app.cell
def _(section):
    section("## Turn by turn", ["timeline", "milestones"], ["timing"])
    return


@app.cell
def _(section):
    section("## The queue", ["queue"])
    return


@app.cell
def _(section):
    section(
        """
    ## Boundaries

    Where a malformed tool call first stands, replays included. Availability is not compared: nothing came.
    """,
        [],
        ["boundaries"],
    )
    return


@app.cell
def _(drawn, missing, tables):
    # As a script: the tables on stdout, and the files that were asked for.
    if mo.app_meta().mode == "script":
        if missing:
            print(f"example data: {missing}", file=sys.stderr)
        for _name, _table in tables.items():
            printed(_name, _table.head(40))
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
