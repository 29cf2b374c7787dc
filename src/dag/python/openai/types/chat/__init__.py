"""Objects of the Chat Completions API."""

from openai.objects import kind
from updraft_lazy import lazy_names

ChatCompletion = kind(
    "ChatCompletion", "service_tier system_fingerprint usage", plain=("error",), of="chat.completion"
)
ChatCompletionChunk = kind("ChatCompletionChunk", "service_tier system_fingerprint usage", of="chat.completion.chunk")
ChatCompletionMessage = kind(
    "ChatCompletionMessage", "annotations audio content function_call refusal tool_calls", plain=("reasoning_details",)
)
Choice = kind("Choice", "logprobs")
CompletionUsage = kind("CompletionUsage", "completion_tokens_details prompt_tokens_details")

__getattr__, _ = lazy_names(__name__, {}, fallback=True)
