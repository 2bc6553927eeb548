"""How do a source's events become rows of facts?

:class:`Fold` is the one fold that all providers share. It knows one source and says what that source said: it gives
places and keys, drops resends, lets growing snapshots replace each other, names conflicts, and counts every line.
Nothing is masked here and nothing is paired over sources.
"""

from __future__ import annotations

from etl.assemble.fold import Fold

__all__ = ["Fold"]
