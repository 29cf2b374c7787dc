"""What a run of an agent gives."""


class AgentRunResult:
    """An answer, and the way to it."""

    def __init__(self, output, *, run_id, conversation_id, metadata, usage, messages, new_message_index):
        self.output = output
        self.run_id = run_id
        self.conversation_id = conversation_id
        self.metadata = metadata
        self.usage = usage
        self._data = messages
        self._new_message_index = new_message_index
        self._messages = None

    def __class_getitem__(cls, item):
        return cls

    def __repr__(self):
        return f"AgentRunResult(output={self.output!r})"

    def all_messages(self):
        """The conversation, earlier runs of it included."""
        if self._messages is None:
            from pydantic_ai.messages import from_data

            self._messages = from_data(self._data)
        return self._messages

    def new_messages(self):
        """What this run added."""
        return self.all_messages()[self._new_message_index :]

    def all_messages_json(self):
        """The conversation as JSON, in bytes."""
        return self._json(self._data)

    def new_messages_json(self):
        """What this run added, as JSON in bytes."""
        return self._json(self._data[self._new_message_index :])

    @staticmethod
    def _json(data):
        from updraft_values import to_json

        return to_json(data).encode()

    @property
    def response(self):
        """The model's last answer."""
        for message in reversed(self.all_messages()):
            if message.kind == "response":
                return message
        raise ValueError("No response found in the message history")
