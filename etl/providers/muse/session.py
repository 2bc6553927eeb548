"""What does a Muse log state about its session: folder, branch, version, title, model?

Nothing in the path names the project: ``workspace_root`` stands in the first metadata record, which since 1.1 is the
third of the log. A sub-agent's copy of it lacks the folder: that is its parent's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etl.events import SessionEvent, SessionFact
from etl.providers.muse.usage import model_name
from etl.shape import as_dict, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.muse.lines import Entry
    from etl.providers.muse.turns import Handler, Turns


class Facts:
    """The facts of one session. ``has_metadata``: a metadata record was seen (the agent's own reminder sessions have
    none).
    """

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.has_metadata = False

    def handlers(self) -> dict[str, Handler]:
        """What is done with which record."""
        return {
            "runtime.session.metadata": self._metadata,
            "runtime.session.route_facts": self._route,
            "session.workspace_branch.observed": self._branch,
            "session.opened.observed": self._opened,
            "session.name.changed": self._name,
            "runtime.model_reconfigure.completed": self._model,
        }

    def _metadata(self, entry: Entry) -> Iterator[Event]:
        body = entry.body
        self.has_metadata = True
        model = model_name(body.get("model_id"))
        yield entry.opened()
        stated = (
            ("cwd.workspace", as_text(body.get("workspace_root"))),
            ("version", as_text(as_dict(body.get("build")).get("semver"))),
            ("model.config", model),
        )
        for key, value in stated:
            if value is not None:
                yield SessionFact(key, value)
        if model is not None:
            self.turns.model = model

    def _route(self, entry: Entry) -> Iterator[Event]:
        yield entry.opened()
        if cwd := as_text(entry.body.get("cwd")):
            yield SessionFact("cwd.route", cwd)

    def _branch(self, entry: Entry) -> Iterator[Event]:
        reference = as_dict(entry.body.get("reference"))
        yield entry.opened()
        if root := as_text(entry.body.get("workspace_root")):
            yield SessionFact("cwd.branch", root)
        if reference.get("kind") == "branch" and (name := as_text(reference.get("name"))):
            yield SessionFact("branch", name)

    def _opened(self, entry: Entry) -> Iterator[Event]:
        yield entry.opened()
        yield SessionEvent("session", "resumed" if entry.body.get("resume") is True else "opened")

    def _name(self, entry: Entry) -> Iterator[Event]:
        name = as_str(entry.body.get("new_name"))
        yield entry.opened()
        if name is not None:
            key = "title.custom" if entry.body.get("source") == "user" else "title.auto"
            yield SessionFact(key, name)

    def _model(self, entry: Entry) -> Iterator[Event]:
        model = model_name(as_dict(entry.body.get("effective")).get("model_id"))
        yield entry.opened(chained=False)
        yield SessionEvent("model", "reconfigured", model)
        if model is not None:
            self.turns.model = model
            yield SessionFact("model.config", model)
