"""What a conversation that goes on must do."""

from updraft_record import Record


class SessionSettings(Record):
    """How much of a conversation is told."""

    _keyword = {"limit": None}


class SessionABC:
    """A conversation that goes on."""

    session_id = ""
    session_settings = None

    async def get_items(self, limit=None):
        """The last items, the oldest first."""
        raise NotImplementedError

    async def add_items(self, items):
        """Adds items."""
        raise NotImplementedError

    async def pop_item(self):
        """Takes the last item away."""
        raise NotImplementedError

    async def clear_session(self):
        """Forgets all."""
        raise NotImplementedError


Session = SessionABC
