"""Objects of the Responses API."""

from openai.objects import kind
from updraft_lazy import lazy_names

Response = kind(
    "Response",
    "conversation error id incomplete_details instructions max_output_tokens max_tool_calls metadata previous_response_id "
    "prompt reasoning service_tier status store text truncation usage user",
    plain=("metadata", "tools", "tool_choice", "text", "instructions"),
    of="response",
)
ResponseUsage = kind("ResponseUsage")
ResponseOutputMessage = kind(
    "ResponseOutputMessage",
    "phase status",
    plain=("provider_data",),
    of="message",
    order="id content role status type phase",
)
ResponseOutputText = kind("ResponseOutputText", "logprobs", of="output_text", order="annotations text type logprobs")
ResponseOutputRefusal = kind("ResponseOutputRefusal", of="refusal")
ResponseFunctionToolCall = kind(
    "ResponseFunctionToolCall",
    "caller id namespace status",
    plain=("provider_data",),
    of="function_call",
    order="arguments call_id name type id caller namespace status",
)
ResponseReasoningItem = kind(
    "ResponseReasoningItem", "content encrypted_content status", plain=("provider_data",), of="reasoning"
)
ResponseFunctionWebSearch = kind("ResponseFunctionWebSearch", of="web_search_call")
ResponseFileSearchToolCall = kind("ResponseFileSearchToolCall", "results", of="file_search_call")
ResponseCodeInterpreterToolCall = kind("ResponseCodeInterpreterToolCall", "code outputs", of="code_interpreter_call")
ResponseComputerToolCall = kind("ResponseComputerToolCall", of="computer_call")
ResponseCustomToolCall = kind("ResponseCustomToolCall", "id namespace", of="custom_tool_call")
ResponseCompactionItem = kind("ResponseCompactionItem", of="compaction")
ImageGenerationCall = kind("ImageGenerationCall", "result", of="image_generation_call")
LocalShellCall = kind("LocalShellCall", of="local_shell_call")
McpCall = kind("McpCall", "approval_request_id error output status", of="mcp_call")
McpListTools = kind("McpListTools", "error", plain=("tools",), of="mcp_list_tools")
McpApprovalRequest = kind("McpApprovalRequest", of="mcp_approval_request")

# Events of a streamed answer.
ResponseCreatedEvent = kind("ResponseCreatedEvent", of="response.created")
ResponseInProgressEvent = kind("ResponseInProgressEvent", of="response.in_progress")
ResponseCompletedEvent = kind("ResponseCompletedEvent", of="response.completed")
ResponseFailedEvent = kind("ResponseFailedEvent", of="response.failed")
ResponseIncompleteEvent = kind("ResponseIncompleteEvent", of="response.incomplete")
ResponseErrorEvent = kind("ResponseErrorEvent", "code param", of="error")
ResponseOutputItemAddedEvent = kind("ResponseOutputItemAddedEvent", of="response.output_item.added")
ResponseOutputItemDoneEvent = kind("ResponseOutputItemDoneEvent", of="response.output_item.done")
ResponseContentPartAddedEvent = kind("ResponseContentPartAddedEvent", of="response.content_part.added")
ResponseContentPartDoneEvent = kind("ResponseContentPartDoneEvent", of="response.content_part.done")
ResponseTextDeltaEvent = kind("ResponseTextDeltaEvent", of="response.output_text.delta")
ResponseTextDoneEvent = kind("ResponseTextDoneEvent", of="response.output_text.done")
ResponseRefusalDeltaEvent = kind("ResponseRefusalDeltaEvent", of="response.refusal.delta")
ResponseFunctionCallArgumentsDeltaEvent = kind(
    "ResponseFunctionCallArgumentsDeltaEvent", of="response.function_call_arguments.delta"
)
ResponseFunctionCallArgumentsDoneEvent = kind(
    "ResponseFunctionCallArgumentsDoneEvent", of="response.function_call_arguments.done"
)
ResponseReasoningSummaryTextDeltaEvent = kind(
    "ResponseReasoningSummaryTextDeltaEvent", of="response.reasoning_summary_text.delta"
)

# The other names are those of shapes that Dag code annotates with.
__getattr__, _ = lazy_names(__name__, {}, fallback=True)
