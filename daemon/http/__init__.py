"""HTTP: one module per resource; parsing and answering only. The provider routes are bare ASGI."""
