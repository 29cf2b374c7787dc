"""A conversation in memory. Dag code has no files to write, and so no database of its own."""

import json

from agents.memory.session import SessionABC


class SQLiteSession(SessionABC):
    """A conversation that is kept for as long as the task runs."""

    def __init__(
        self,
        session_id,
        db_path=":memory:",
        sessions_table="agent_sessions",
        messages_table="agent_messages",
        session_settings=None,
    ):
        if str(db_path) != ":memory:":
            from updraft_unavailable import refuse

            refuse("SQLiteSession with a file")
        self.session_id = session_id
        self.session_settings = session_settings
        self._items = []

    async def get_items(self, limit=None):
        """The last items, the oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = self._items if limit is None else self._items[-limit:] if limit > 0 else []
        return [json.loads(item) for item in items]

    async def add_items(self, items):
        """Adds items."""
        self._items.extend(json.dumps(item) for item in items)

    async def pop_item(self):
        """Takes the last item away."""
        return json.loads(self._items.pop()) if self._items else None

    async def clear_session(self):
        """Forgets all."""
        self._items.clear()

    def close(self):
        """There is nothing to close."""
