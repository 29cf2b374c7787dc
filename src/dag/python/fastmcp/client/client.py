"""`Client`: what `MCPToolset` takes, with settings."""


class Client:
    """A server and the time it may take."""

    def __init__(self, transport, **settings):
        self.transport = transport
        self.settings = settings
