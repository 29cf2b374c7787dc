"""XComs as a class."""


class BaseXCom:
    """XComs of other runs and tasks; a running task uses `ti.xcom_pull` and `ti.xcom_push`."""

    XCOM_RETURN_KEY = "return_value"

    @classmethod
    def get_one(cls, *, key, dag_id, task_id, run_id, map_index=None, include_prior_dates=False):
        """One XCom."""
        from airflow.sdk.definitions.context import get_current_context

        return get_current_context()["ti"].xcom_pull(
            task_ids=task_id,
            dag_id=dag_id,
            key=key,
            run_id=run_id,
            map_indexes=-1 if map_index is None else map_index,
            include_prior_dates=include_prior_dates,
        )

    get_value = get_one

    @classmethod
    def get_all(cls, *, key, dag_id, task_id, run_id, include_prior_dates=False):
        """The XComs of every map index."""
        from airflow.sdk.definitions.context import get_current_context

        return get_current_context()["ti"].xcom_pull(
            task_ids=task_id,
            dag_id=dag_id,
            key=key,
            run_id=run_id,
            include_prior_dates=include_prior_dates,
            as_list=True,
        )

    @classmethod
    def set(cls, key, value, *, dag_id=None, task_id=None, run_id=None, map_index=-1):
        """Pushes an XCom of the running task."""
        from airflow.sdk.definitions.context import get_current_context

        get_current_context()["ti"].xcom_push(key, value)


XCom = BaseXCom
