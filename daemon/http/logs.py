"""/reef/logs: the daemon's latest log lines."""

from starlette.requests import Request
from starlette.routing import Route

from daemon.http.answers import Json
from daemon.http.rooms import int_param, rooms


async def logs(request: Request) -> Json:
    limit = int_param(request, "limit", 200, at_least=1, at_most=10_000)
    lines = rooms(request).journal.after(int_param(request, "after", 0), limit)
    return Json(
        {"lines": [{"number": line.number, "level": line.level, "text": line.text} for line in lines]}
    )


routes = [Route("/reef/logs", logs)]
