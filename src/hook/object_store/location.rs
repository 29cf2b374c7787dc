//! Where files are: the URLs of object stores, as `ObjectStoragePath` and DataFusion's sources write them.

use std::fmt;

use object_store::path::Path;

use super::StoreError;

/// The kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// The worker's own disk.
    File,
    /// Amazon S3 and what speaks its language.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage, Data Lake Gen2 included.
    Azure,
    /// Any HTTP server.
    Http,
}

/// A URL of an object store, taken apart. Nothing in it is percent-decoded, as in the Python libraries: a key is written
/// as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub scheme: Scheme,
    /// Bucket or container. For HTTP scheme, host and port of the server; for local files empty.
    pub container: String,
    /// The storage account's host, where the URL names it: `abfs://container@account.dfs.core.windows.net/`.
    pub account_host: Option<String>,
    /// What stands after the container, without the slash between them; for local files absolute.
    pub path: String,
    /// The connection that the URL itself names: `s3://my_conn@bucket/key`.
    pub conn_id: Option<String>,
    url: String,
}

impl Location {
    /// Reads a URL. Text without a scheme is a local path.
    ///
    /// # Errors
    /// Its scheme is not known, or the container is missing.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let wrong = |problem: String| StoreError::Url {
            url: without_user(url),
            problem,
        };
        let Some((scheme, rest)) = url.split_once("://") else {
            return Self::local(url, url);
        };
        let scheme_name = scheme.to_ascii_lowercase();
        let scheme = match scheme_name.as_str() {
            "file" | "local" => {
                let path = rest.find('/').and_then(|slash| rest.get(slash..));
                return Self::local(path.unwrap_or(rest), url);
            }
            "s3" | "s3a" | "s3n" => Scheme::S3,
            "gs" | "gcs" => Scheme::Gcs,
            "abfs" | "abfss" | "az" | "adl" | "wasb" | "wasbs" => Scheme::Azure,
            "http" | "https" => Scheme::Http,
            other => {
                return Err(wrong(format!(
                    "no store has the scheme {other:?}; use s3, gs, abfs, file or https"
                )));
            }
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user).filter(|user| !user.is_empty()), host),
            None => (None, authority),
        };
        if host.is_empty() {
            return Err(wrong(match scheme {
                Scheme::Http => "the host is missing".to_owned(),
                _ => "the bucket or container is missing".to_owned(),
            }));
        }
        let mut location = Self {
            scheme,
            container: host.to_owned(),
            account_host: None,
            path: path.to_owned(),
            conn_id: None,
            url: without_user(url),
        };
        match (scheme, user) {
            // An account's host has dots and a container's name has none, so the two spellings can be told apart.
            (Scheme::Azure, Some(user)) if host.contains('.') => {
                location.account_host = Some(host.to_owned());
                user.clone_into(&mut location.container);
                url.clone_into(&mut location.url);
            }
            (Scheme::Http, user) => {
                if user.is_some_and(|user| user.contains(':')) {
                    return Err(wrong(
                        "a URL must not hold a password: put it into a connection".to_owned(),
                    ));
                }
                location.conn_id = user.map(ToOwned::to_owned);
                location.container = format!("{scheme_name}://{host}");
            }
            (_, user) => location.conn_id = user.map(ToOwned::to_owned),
        }
        // Clients write these into addresses, where a `#` or a `/` would lead to another server.
        let names = [
            Some(&location.container).filter(|_| scheme != Scheme::Http),
            location.account_host.as_ref(),
        ];
        if let Some(name) = names
            .into_iter()
            .flatten()
            .find(|name| !name.chars().all(may_be_in_a_name))
        {
            return Err(wrong(format!(
                "{name:?} is no name of a bucket or container: letters, digits and . _ $ - may be in it"
            )));
        }
        Ok(location)
    }

    /// The store in one spelling, whichever of its schemes was written: `s3://bucket`. Azure's has the account before the
    /// container where the URL names it, for two accounts may have containers of one name. All local files have one.
    #[must_use]
    pub fn root(&self) -> String {
        let scheme = match self.scheme {
            Scheme::File => "file",
            Scheme::S3 => "s3",
            Scheme::Gcs => "gs",
            Scheme::Azure => "az",
            Scheme::Http => return self.container.clone(),
        };
        let account = self.account_host.as_deref();
        match account.and_then(|host| host.split('.').next()) {
            Some(account) => format!("{scheme}://{account}.{}", self.container),
            None => format!("{scheme}://{}", self.container),
        }
    }

    fn local(path: &str, url: &str) -> Result<Self, StoreError> {
        let wrong = |problem: String| StoreError::Url {
            url: url.to_owned(),
            problem,
        };
        let absolute = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
        let path = absolute
            .to_str()
            .ok_or_else(|| wrong("the path is not UTF-8".to_owned()))?;
        Ok(Self {
            scheme: Scheme::File,
            container: String::new(),
            account_host: None,
            path: path.to_owned(),
            conn_id: None,
            url: format!("file://{path}"),
        })
    }

    /// The path in the store that [`super::open`] gives.
    ///
    /// # Errors
    /// It has an empty part, or one that is `.` or `..`.
    pub fn object_path(&self) -> Result<Path, StoreError> {
        Path::parse(&self.path).map_err(|error| StoreError::Url {
            url: self.url.clone(),
            problem: error.to_string(),
        })
    }
}

/// The URL, without the connection that it may name.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

fn may_be_in_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$' | '-')
}

fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> (Scheme, String, String, Option<String>) {
        let location = Location::parse(url).unwrap();
        (
            location.scheme,
            location.container,
            location.path,
            location.conn_id,
        )
    }

    #[test]
    fn the_url_may_name_the_connection_before_the_bucket() {
        let conn = Some("aws_default".to_owned());
        assert_eq!(
            parts("s3://aws_default@b/a%20b/c d+é"),
            (Scheme::S3, "b".into(), "a%20b/c d+é".into(), conn)
        );
        assert_eq!(
            parts("gs://b"),
            (Scheme::Gcs, "b".into(), String::new(), None)
        );
        assert_eq!(
            parts("abfs://wasb_x@c/p"),
            (Scheme::Azure, "c".into(), "p".into(), Some("wasb_x".into()))
        );
    }

    #[test]
    fn a_container_before_the_host_of_an_account_is_no_connection() {
        let location = Location::parse("abfss://c@acc.dfs.core.windows.net/p/q").unwrap();
        assert_eq!(
            (
                location.container.as_str(),
                location.account_host.as_deref()
            ),
            ("c", Some("acc.dfs.core.windows.net"))
        );
        assert_eq!((location.path.as_str(), location.conn_id), ("p/q", None));
    }

    #[test]
    fn text_without_a_scheme_and_file_urls_are_local_paths() {
        for url in [
            "/data/x",
            "file:///data/x",
            "local:///data/x",
            "file://c@/data/x",
        ] {
            assert_eq!(
                parts(url),
                (Scheme::File, String::new(), "/data/x".into(), None),
                "{url}"
            );
        }
    }

    #[test]
    fn a_server_keeps_its_port_and_its_scheme() {
        assert_eq!(
            parts("http://localhost:8080/a/b"),
            (
                Scheme::Http,
                "http://localhost:8080".into(),
                "a/b".into(),
                None
            )
        );
    }

    #[test]
    fn every_spelling_of_a_store_has_one_root() {
        for (url, expected) in [
            ("s3a://who@b/k", "s3://b"),
            ("gcs://b", "gs://b"),
            ("wasbs://c@acc.blob.core.windows.net/k", "az://acc.c"),
            ("abfs://c/k", "az://c"),
            ("/some/file", "file://"),
            ("https://web:8443/k", "https://web:8443"),
        ] {
            assert_eq!(Location::parse(url).unwrap().root(), expected, "{url}");
        }
    }

    #[test]
    fn nothing_in_the_name_of_a_bucket_can_lead_to_another_server() {
        for url in [
            "s3://evil.example#/x",
            "s3://evil.example%2f",
            "gs://b?x",
            "wasb://c\\d",
            "s3://evil.example:443/x",
            "wasb://c#@acc.blob.core.windows.net",
            "wasb://c@evil#x.blob.core.windows.net",
            "wasb://a@c@acc.blob.core.windows.net",
        ] {
            let error = Location::parse(url).unwrap_err().to_string();
            assert!(
                error.contains("is no name of a bucket or container"),
                "{url}: {error}"
            );
        }
        for url in ["abfs://$web/x", "s3://a_b.C-1/x y#z?"] {
            assert!(Location::parse(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_can_not_be_read_says_so_without_the_user_part() {
        let text = |url: &str| Location::parse(url).unwrap_err().to_string();
        assert_eq!(
            text("ftp://u@h/x"),
            "ftp://h/x: no store has the scheme \"ftp\"; use s3, gs, abfs, file or https"
        );
        assert_eq!(
            text("s3:///x"),
            "s3:///x: the bucket or container is missing"
        );
        assert_eq!(
            text("https://u:made-up@h/x"),
            "https://h/x: a URL must not hold a password: put it into a connection"
        );
    }
}
