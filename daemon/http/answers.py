"""JSON answers of the `/reef/*` routes."""

import json
from typing import Any

from starlette.responses import JSONResponse


class Json(JSONResponse):
    """JSON that every client can read, whatever traffic it tells of: half a surrogate pair stays as its
    escape, a number that is none becomes null."""

    def render(self, content: Any) -> bytes:
        try:
            return super().render(content)
        except ValueError:  # UnicodeEncodeError is one
            plain = json.loads(json.dumps(content), parse_constant=lambda _: None)
            return json.dumps(plain, separators=(",", ":")).encode()
