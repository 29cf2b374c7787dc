"""`DocumentLoaderOperator`: reads documents into text."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class DocumentLoaderOperator(BaseOperator):
    """Loads and splits documents."""

    _updraft_reason = "it needs Python packages that read documents"
    template_fields = (
        "source_path",
        "source_conn_id",
        "file_type",
        "file_extensions",
        "parser",
        "metadata_fields",
    )

    def __init__(
        self,
        *,
        source_path=None,
        source_conn_id=None,
        source_bytes=None,
        file_type=None,
        parser="auto",
        file_extensions=None,
        metadata_fields=None,
        encoding="utf-8",
        encoding_errors="strict",
        json_text_field=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
