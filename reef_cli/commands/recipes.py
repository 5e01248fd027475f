"""`reef recipes`: the cookbook. Recipes are plug-ins, so each is loaded here, and a broken one is a line."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from reef_cli.options import JsonFlag
from reef_cli.output import emit
from reef_cli.render.text import table
from reef_cli.session import command

app = command()


@app.command()
def recipes(as_json: JsonFlag = False) -> None:
    """What each installed recipe changes and needs."""
    found = sorted(entry_points(group="reef.recipes"), key=lambda point: point.name)
    emit([describe(point) for point in found], render, as_json=as_json)


def describe(point: EntryPoint) -> dict[str, Any]:
    """One recipe: `{name, surface, needs, summary, error}`; `error` is None unless it does not load."""
    try:
        kind = point.load()
        needs = _needs(kind())
        return {
            "name": point.name,
            "surface": kind.surface,
            "needs": needs,
            "summary": kind.summary,
            "error": None,
        }
    except Exception as error:  # a plug-in may fail in any way; it must not take the list down
        told = f"does not load: {type(error).__name__}: {error}"
        return {"name": point.name, "surface": "-", "needs": "-", "summary": told, "error": told}


def _needs(recipe: Any) -> str:
    if recipe.surface == "none":
        return "traffic"
    return "reports, a model" if recipe.needs_model() else "reports; a model for the gate"


def render(rows: list[dict[str, Any]]) -> str:
    """The cookbook as a table."""
    if not rows:
        return "no recipes are installed"
    cells = [(row["name"], row["surface"], row["needs"], row["summary"]) for row in rows]
    return table(("RECIPE", "CHANGES", "NEEDS", "WHAT IT DOES"), cells)
