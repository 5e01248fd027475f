"""Agents and SDKs as they are, unmodified, through a real daemon in front of the stub provider.

`play` is the provider's part in each scenario; `coding` and `sdks` run the clients, `install` fetches them;
`table` says what each leaves in the records. `make test-agents` runs what needs npm, `make test` the rest.
"""
