"""`record`: keep what passed through and learn nothing."""

from typing import ClassVar

from reef.recipe import Recipe, Surface


class Record(Recipe):
    """Records and reports are stored; no step ever runs."""

    summary = "keeps records and reports, learns nothing"
    surface: ClassVar[Surface] = "none"
