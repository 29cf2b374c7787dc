//! Model providers behind `agent::Model`. One folder knows the wire of each provider; nothing else does.
