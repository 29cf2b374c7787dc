"""`GitHook`: a git repository."""

from airflow.sdk.bases.hook import BaseHook
from updraft_native_hook import not_here

# Attributes that are fields of the connection's extra.
_OF_EXTRA = (
    "private_key",
    "key_file",
    "private_key_passphrase",
    "known_hosts_file",
    "ssh_config_file",
    "host_proxy_cmd",
    "github_app_id",
    "github_installation_id",
)


class GitHook(BaseHook):
    """Knows how to reach a repository; the worker clones it (`GitSkills`, `resolve_skills`).

    The connection is looked up when something of it is asked for, so that a Dag file loads without it.
    """

    conn_name_attr = "git_conn_id"
    default_conn_name = "git_default"
    conn_type = "git"
    hook_name = "GIT"

    def __init__(self, git_conn_id="git_default", repo_url=None, *args, **kwargs):
        super().__init__()
        self.git_conn_id = git_conn_id
        self.env = {}
        self._given_url = repo_url
        self._read = None

    def _fields(self):
        if self._read is None:
            self._read = _read(self.get_connection(self.git_conn_id), self._given_url)
        return self._read

    def __getattr__(self, name):
        if name in ("repo_url", "user_name", "auth_token", "strict_host_key_checking", "ssh_port") or name in _OF_EXTRA:
            return self._fields()[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def uses_github_app_auth(self):
        """Does the connection authenticate as a GitHub App?"""
        return self.github_app_id is not None and self.github_installation_id is not None

    configure_hook_env = set_git_env = not_here("prepares the environment of a git program, which is not run here")


def _read(connection, given_url):
    """What the fields of a connection say, as attributes of the hook."""
    extra = connection.extra_dejson
    fields = {name: extra.get(name) for name in _OF_EXTRA}
    url, user, token = _without_password(given_url or connection.host)
    fields["repo_url"] = url
    fields["user_name"] = connection.login or user or "user"
    fields["auth_token"] = connection.password or token
    fields["strict_host_key_checking"] = extra.get("strict_host_key_checking") or "accept-new"
    fields["ssh_port"] = int(extra["ssh_port"]) if extra.get("ssh_port") else None
    if fields["key_file"] and fields["private_key"]:
        raise ValueError("Both 'key_file' and 'private_key' cannot be provided at the same time")
    app = (fields["github_app_id"], fields["github_installation_id"])
    if any(app) and not all(app):
        raise ValueError(
            "Both 'github_app_id' and 'github_installation_id' must be provided to use GitHub App Authentication"
        )
    if all(app):
        if fields["auth_token"]:
            raise ValueError("Password field must be empty to use GitHub App Auth")
        if not (url or "").startswith(("https://", "http://")):
            raise ValueError(f"GitHub App authentication requires an HTTPS repository URL, but got: {url!r}")
    return fields


def _without_password(url):
    """A URL without the user and password in it, and those two."""
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return url, None, None
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    before, at_sign, host = authority.rpartition("@")
    user, _, password = before.partition(":")
    if not at_sign or not password:
        return url, None, None
    from urllib.parse import unquote

    return f"{scheme}{separator}{host}{slash}{path}", unquote(user) or None, unquote(password)
