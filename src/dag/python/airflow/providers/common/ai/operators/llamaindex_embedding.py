"""`LlamaIndexEmbeddingOperator`: documents into a vector index."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class LlamaIndexEmbeddingOperator(BaseOperator):
    """Embeds documents with LlamaIndex."""

    _updraft_reason = "it needs the Python package llama-index"
    template_fields = (
        "documents",
        "embed_model",
        "llm_conn_id",
        "embed_conn_id",
        "embedding_kwargs",
        "persist_dir",
        "persist_conn_id",
    )

    def __init__(
        self,
        *,
        documents,
        embed_model=None,
        llm_conn_id=None,
        embed_conn_id=None,
        embedding_kwargs=None,
        chunk_size=512,
        chunk_overlap=50,
        persist_dir=None,
        persist_conn_id=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
