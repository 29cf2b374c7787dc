"""Operators that run SQL."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class BaseSQLOperator(BaseOperator):
    """The base of operators that run SQL."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("conn_id", "database", "hook_params")

    def __init__(self, *, conn_id=None, database=None, hook_params=None, retry_on_failure=True, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())


class SQLExecuteQueryOperator(BaseSQLOperator):
    """Runs SQL."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("sql", "parameters", "conn_id", "database", "hook_params")

    def __init__(
        self,
        *,
        sql,
        autocommit=False,
        parameters=None,
        handler=None,
        output_processor=None,
        conn_id=None,
        database=None,
        split_statements=None,
        return_last=True,
        show_return_value_in_logs=False,
        requires_result_fetch=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())


class SQLColumnCheckOperator(BaseSQLOperator):
    """Checks columns."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("table", "partition_clause", "sql", "conn_id", "database", "hook_params")

    def __init__(
        self, *, table, column_mapping, partition_clause=None, conn_id=None, database=None, accept_none=True, **kwargs
    ):
        super().__init__(**kwargs)
        hold(self, locals())


class SQLTableCheckOperator(BaseSQLOperator):
    """Checks a table."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("table", "partition_clause", "sql", "conn_id", "database", "hook_params")

    def __init__(
        self, *, table, checks, partition_clause=None, conn_id=None, database=None, accept_none=False, **kwargs
    ):
        super().__init__(**kwargs)
        hold(self, locals())


class SQLCheckOperator(BaseSQLOperator):
    """Checks the first row of a query."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("sql", "conn_id", "database", "hook_params")

    def __init__(self, *, sql, conn_id=None, database=None, parameters=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())


class SQLValueCheckOperator(BaseSQLOperator):
    """Checks a value."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("sql", "pass_value", "conn_id", "database", "hook_params")

    def __init__(self, *, sql, pass_value, tolerance=None, conn_id=None, database=None, parameters=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())


class SQLIntervalCheckOperator(BaseSQLOperator):
    """Compares values of two days."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("sql1", "sql2", "conn_id", "database", "hook_params")

    def __init__(
        self,
        *,
        table,
        metrics_thresholds,
        date_filter_column="ds",
        days_back=-7,
        ratio_formula="max_over_min",
        ignore_zero=True,
        conn_id=None,
        database=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())


class SQLThresholdCheckOperator(BaseSQLOperator):
    """Checks a value against bounds."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("sql", "min_threshold", "max_threshold", "conn_id", "database", "hook_params")

    def __init__(self, *, sql, min_threshold, max_threshold, conn_id=None, database=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())


class BranchSQLOperator(BaseSQLOperator):
    """Follows one of two paths by a query."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = ("sql", "conn_id", "database", "hook_params")

    def __init__(
        self,
        *,
        sql,
        follow_task_ids_if_true,
        follow_task_ids_if_false,
        conn_id="default_conn_id",
        database=None,
        parameters=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())


class SQLInsertRowsOperator(BaseSQLOperator):
    """Inserts rows."""

    _updraft_reason = "queries of this operator are not run natively yet"
    template_fields = (
        "table_name",
        "conn_id",
        "schema",
        "database",
        "_columns",
        "ignored_columns",
        "preoperator",
        "postoperator",
        "insert_args",
    )

    def __init__(
        self,
        *,
        table_name,
        conn_id=None,
        schema=None,
        database=None,
        columns=None,
        ignored_columns=None,
        rows=None,
        rows_processor=None,
        preoperator=None,
        postoperator=None,
        hook_params=None,
        insert_args=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
