"""`LlamaIndexRetrievalOperator`: what a vector index finds."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class LlamaIndexRetrievalOperator(BaseOperator):
    """Retrieves with LlamaIndex."""

    _updraft_reason = "it needs the Python package llama-index"
    template_fields = (
        "query",
        "index_persist_dir",
        "persist_conn_id",
        "embed_model",
        "llm_conn_id",
        "embed_conn_id",
        "embedding_kwargs",
    )

    def __init__(
        self,
        *,
        query,
        index_persist_dir,
        persist_conn_id=None,
        embed_model=None,
        llm_conn_id=None,
        embed_conn_id=None,
        embedding_kwargs=None,
        top_k=5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
