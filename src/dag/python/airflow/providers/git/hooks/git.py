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
        return None not in (self.github_app_id, self.github_installation_id)

    configure_hook_env = set_git_env = not_here("prepares the environment of a git program, which is not run here")


def _read(connection, given_url):
    """What the fields of a connection say, as attributes of the hook."""
    fields = dict.fromkeys(_OF_EXTRA)
    fields.update((name, value) for name, value in connection.extra_dejson.items() if name in _OF_EXTRA)
    fields.update(_settings(connection))
    url, login = _taken_apart(given_url or connection.host)
    fields["repo_url"] = url
    fields["user_name"] = connection.login or login.get("user") or "user"
    fields["auth_token"] = connection.password or login.get("password")
    for complaint in _complaints(fields):
        raise ValueError(complaint)
    return fields


def _settings(connection):
    extra = connection.extra_dejson
    port = extra.get("ssh_port")
    return {
        "strict_host_key_checking": extra.get("strict_host_key_checking") or "accept-new",
        "ssh_port": int(port) if port else None,
    }


def _complaints(fields):
    """What does not fit together."""
    if fields["key_file"] and fields["private_key"]:
        yield "the git connection has a private_key and a key_file: leave one of the two out"
    given = [name for name in ("github_app_id", "github_installation_id") if fields[name]]
    if len(given) == 1:
        yield f"the git connection has a {given[0]} alone: a GitHub App needs github_app_id and github_installation_id"
    if len(given) == 2 and fields["auth_token"]:
        yield "the git connection has a password beside its GitHub App: leave one of the two out"
    if len(given) == 2 and not _is_web(fields["repo_url"]):
        yield f"a GitHub App is for repositories at https://, and the git connection names {fields['repo_url']!r}"


def _is_web(url):
    return isinstance(url, str) and url.startswith(("https://", "http://"))


def _taken_apart(url):
    """A URL without the login in it, and the login; a user without a password stays where it is."""
    from urllib.parse import unquote, urlsplit

    split = urlsplit(url) if _is_web(url) else None
    if split is None or not split.password:
        return url, {}
    bare = split._replace(netloc=split.netloc.rsplit("@", 1)[1])
    return bare.geturl(), {"user": unquote(split.username or ""), "password": unquote(split.password)}
