"""`GitHook`: a git repository."""

from airflow.sdk.bases.hook import BaseHook


class GitHook(BaseHook):
    """Knows how to reach a repository; the worker clones it."""

    conn_name_attr = "git_conn_id"
    default_conn_name = "git_default"
    conn_type = "git"
    hook_name = "GIT"

    def __init__(self, git_conn_id="git_default", repo_url=None, *args, **kwargs):
        super().__init__()
        self.git_conn_id = git_conn_id
        self.repo_url = repo_url
