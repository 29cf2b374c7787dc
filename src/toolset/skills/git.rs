//! Clones the repository of a `GitSkills` source.
//!
//! A credential is given to libgit2 in memory and nowhere else: not in a URL, an argument, the environment or a file.
//! It is offered once, and only to the host that the Dag names.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use git2::build::CheckoutBuilder;
use git2::{
    AutotagOption, CertificateCheckStatus, Cred, CredentialType, ErrorClass, ErrorCode,
    FetchOptions, ObjectType, Oid, RemoteCallbacks, RemoteRedirect, Repository,
    RepositoryInitOptions, TreeWalkMode, TreeWalkResult,
};
use secrecy::ExposeSecret as _;

use super::SkillsError;
use super::git_connection::{Address, Credential, Transport};
use super::host_keys::HostKeys;
use super::proxy_command::Tunnel;
use super::source::{GitSkills, check_path};
use crate::airflow::error_chain::error_chain;
use crate::airflow::python_text::repr_str;
use crate::hook::ConnectionSource;
use crate::toolset::work_folder::WorkFolder;

/// How long a clone may take, checkout included.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes that a server may send.
const MAX_RECEIVED: usize = 100 << 20;
/// Bytes that the files may have.
const MAX_CHECKOUT: u64 = 256 << 20;
const MAX_FILES: u64 = 20_000;
/// How many redirects within the host are followed.
const MAX_REDIRECTS: usize = 5;

/// Everything a clone needs, looked up beforehand.
struct Plan {
    /// Where it is fetched from: the given URL, where the same host redirects to, or the near end of a proxy command.
    url: String,
    address: Address,
    source: GitSkills,
    credential: Credential,
    user: String,
    /// The SSH server as known-hosts files name it.
    known_as: String,
}

/// Clones a source into a folder of its own.
///
/// # Errors
/// A source that is refused, a connection that is missing or can't be used, or a clone that fails.
pub(super) async fn clone(
    source: &GitSkills,
    connections: &dyn ConnectionSource,
) -> Result<WorkFolder, SkillsError> {
    let address = Address::parse(&source.repo_url)?;
    if let Some(conn_id) = &source.conn_id
        && address.transport == Transport::Http
    {
        return Err(SkillsError::PlainHttp(repr_str(conn_id)));
    }
    check_path(&source.path)?;
    let credential = match &source.conn_id {
        // Nobody's: a public repository.
        None => Credential::default(),
        Some(conn_id) => Credential::of(&connections.connection(conn_id).await?, &address)?,
    };
    let failed = |reason: String| SkillsError::Clone {
        url: source.repo_url.clone(),
        reason,
    };
    let mut plan = Plan {
        url: source.repo_url.clone(),
        user: credential.user.clone().unwrap_or_else(|| "user".to_owned()),
        known_as: String::new(),
        address,
        source: source.clone(),
        credential,
    };
    if let Some(app) = &plan.credential.app {
        let token = app
            .token(&plan.address.host, plan.address.port)
            .await
            .map_err(failed)?;
        plan.credential.token = Some(token);
    }
    let mut tunnel = None;
    if plan.address.transport == Transport::Ssh {
        tunnel = prepare_ssh(&mut plan).await?;
    } else if plan.address.transport == Transport::Https && plan.credential.token.is_some() {
        plan.url = final_url(&plan.url).await.map_err(failed)?;
    }
    let folder =
        WorkFolder::new().map_err(|error| failed(format!("no temporary folder: {error}")))?;
    // Here and not on the thread, which may still run when the folder has been removed already.
    init(folder.path()).map_err(|error| failed(error.message().to_owned()))?;
    let stop = StopOnDrop(Arc::default());
    let work = {
        let (path, stop) = (folder.path().to_owned(), Arc::clone(&stop.0));
        tokio::task::spawn_blocking(move || {
            let result = fetch_and_check_out(&plan, &path, &stop);
            if stop.load(Ordering::Acquire) {
                // Whoever waited has removed the folder, perhaps while files were still being written.
                let _ = std::fs::remove_dir_all(&path);
            }
            result
        })
    };
    let reason = match tokio::time::timeout(TIMEOUT, work).await {
        Err(_) => format!("it was not done within {} seconds", TIMEOUT.as_secs()),
        Ok(Err(error)) => error.to_string(),
        Ok(Ok(Err(reason))) => reason,
        Ok(Ok(Ok(()))) => return Ok(folder),
    };
    Err(failed(match tunnel.map(|tunnel| tunnel.said()) {
        Some(said) if !said.is_empty() => format!("{reason} (host_proxy_cmd: {said})"),
        _ => reason,
    }))
}

/// Finds the way to an SSH server, and goes it as far as its proxy command.
async fn prepare_ssh(plan: &mut Plan) -> Result<Option<Tunnel>, SkillsError> {
    let conn_id = plan.source.conn_id.clone();
    let route = plan
        .credential
        .route(&plan.address)
        .map_err(|reason| SkillsError::Connection {
            conn_id: conn_id.clone().unwrap_or_default(),
            reason,
        })?;
    if plan.credential.key.is_none() {
        return Err(SkillsError::NoKey {
            url: plan.source.repo_url.clone(),
            conn_id: conn_id.as_deref().map(repr_str),
        });
    }
    plan.known_as = match route.port {
        None | Some(22) => route.host.clone(),
        Some(port) => format!("[{}]:{port}", route.host),
    };
    plan.user.clone_from(&route.user);
    let failed = |reason: String| SkillsError::Clone {
        url: plan.source.repo_url.clone(),
        reason,
    };
    let (tunnel, host, port) = match &route.proxy_command {
        None => (None, route.host.as_str(), route.port),
        Some(command) => {
            let port = route.port.unwrap_or(22);
            let tunnel = Tunnel::open(command, &route.host, port, &route.user)
                .await
                .map_err(failed)?;
            let port = tunnel.port;
            (Some(tunnel), "127.0.0.1", Some(port))
        }
    };
    if host != plan.address.host || port != plan.address.port {
        plan.url = ssh_url(&plan.url, host, port).map_err(failed)?;
    }
    Ok(tunnel)
}

/// Tells the thread that clones that nobody waits for it any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// `ssh://host:port/path` for the path of an ssh address in either form.
fn ssh_url(url: &str, host: &str, port: Option<u16>) -> Result<String, String> {
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map(|(_, path)| format!("/{path}")),
        // Relative to the user's home, unless it begins with a slash.
        None => url.split_once(':').map(|(_, path)| {
            if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/~/{path}")
            }
        }),
    };
    let path = path.ok_or_else(|| "its URL has no path".to_owned())?;
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    Ok(format!("ssh://{host}{port}{path}"))
}

/// Where the server wants a repository to be fetched from, asked without the credential: libgit2 would carry it along
/// to wherever a redirect leads.
async fn final_url(url: &str) -> Result<String, String> {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(30))
        .user_agent("git/updraft")
        .build()
        .map_err(|error| error_chain(&error))?;
    let mut current =
        reqwest::Url::parse(url).map_err(|error| format!("its URL can't be read: {error}"))?;
    for _ in 0..=MAX_REDIRECTS {
        let mut probe = current.clone();
        let path = format!("{}/info/refs", current.path().trim_end_matches('/'));
        probe.set_path(&path);
        probe.set_query(Some("service=git-upload-pack"));
        let response = client.get(probe.clone()).send().await.map_err(|error| {
            let text = error_chain(&error.without_url());
            // The one failure of a connection that is the reader's to put right here.
            if text.contains("certificate") {
                untrusted(&text)
            } else {
                text
            }
        })?;
        if !response.status().is_redirection() {
            return Ok(current.to_string());
        }
        let location = response
            .headers()
            .get(reqwest::header::LOCATION)
            .and_then(|location| location.to_str().ok())
            .and_then(|location| probe.join(location).ok())
            .ok_or_else(|| "the server redirects to nowhere".to_owned())?;
        if location.origin() != current.origin() {
            return Err(format!(
                "the server redirects to {}, and the credential is not sent to another host: set repo_url to the \
                 repository's own address",
                location.origin().ascii_serialization()
            ));
        }
        let path = location
            .path()
            .strip_suffix("/info/refs")
            .ok_or_else(|| {
                "the server redirects to something that is no repository: set repo_url to the repository's own address"
                    .to_owned()
            })?;
        current.set_path(path);
    }
    Err("the server redirects again and again".to_owned())
}

fn untrusted(reason: &str) -> String {
    format!(
        "the server's certificate is not trusted ({reason}): name its authority's certificate in SSL_CERT_FILE"
    )
}

/// Why a callback gave up. libgit2 hands on a text at best, and sometimes its own.
#[derive(Clone, Default)]
struct Refusal(Arc<Mutex<Option<String>>>);

impl Refusal {
    fn set(&self, reason: String) -> git2::Error {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert_with(|| reason.clone());
        git2::Error::from_str(&reason)
    }

    fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn fetch_and_check_out(plan: &Plan, folder: &Path, stop: &Arc<AtomicBool>) -> Result<(), String> {
    let refusal = Refusal::default();
    let result = try_fetch_and_check_out(plan, folder, stop, &refusal);
    result.map_err(|error| match refusal.take() {
        Some(reason) => reason,
        None if error.code() == ErrorCode::Certificate || error.class() == ErrorClass::Ssl => {
            untrusted(error.message())
        }
        None => error.message().to_owned(),
    })
}

fn init(folder: &Path) -> Result<(), git2::Error> {
    let mut options = RepositoryInitOptions::new();
    // No template: it could bring hooks.
    options.external_template(false).no_reinit(true);
    Repository::init_opts(folder, &options).map(drop)
}

fn try_fetch_and_check_out(
    plan: &Plan,
    folder: &Path,
    stop: &Arc<AtomicBool>,
    refusal: &Refusal,
) -> Result<(), git2::Error> {
    let repository = Repository::open(folder)?;
    let commit = fetch(plan, &repository, stop, refusal)?;
    check_size(&repository, commit, refusal)?;
    let object = repository.find_object(commit, Some(ObjectType::Commit))?;
    let stopped = Arc::clone(stop);
    let mut checkout = CheckoutBuilder::new();
    checkout
        .force()
        // No program that `.gitattributes` names.
        .disable_filters(true);
    if stopped.load(Ordering::Acquire) {
        return Err(refusal.set("nobody waits for it any more".to_owned()));
    }
    repository.checkout_tree(&object, Some(&mut checkout))?;
    repository.set_head_detached(commit)?;
    repository.remote("origin", &plan.source.repo_url)?;
    Ok(())
}

/// Fetches what is asked for and returns its commit.
fn fetch(
    plan: &Plan,
    repository: &Repository,
    stop: &Arc<AtomicBool>,
    refusal: &Refusal,
) -> Result<Oid, git2::Error> {
    let names = match plan.source.branch.as_deref() {
        None | Some("") => vec!["HEAD".to_owned()],
        Some(name) if name.starts_with("refs/") => vec![name.to_owned()],
        Some(name) => vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")],
    };
    let specs: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(index, name)| format!("+{name}:refs/updraft/{index}"))
        .collect();
    let mut options = FetchOptions::new();
    options
        .remote_callbacks(callbacks(plan, stop, refusal))
        .download_tags(AutotagOption::None)
        .update_fetchhead(false)
        .follow_redirects(if plan.credential.token.is_some() {
            RemoteRedirect::None
        } else {
            RemoteRedirect::Initial
        });
    if plan.address.transport != Transport::Plain {
        options.depth(1);
    }
    let mut remote = repository.remote_anonymous(&plan.url)?;
    remote.fetch(&specs, Some(&mut options), None)?;
    for index in 0..names.len() {
        if let Ok(reference) = repository.find_reference(&format!("refs/updraft/{index}")) {
            let commit = reference.peel_to_commit()?.id();
            return Ok(commit);
        }
    }
    Err(refusal.set(match &plan.source.branch {
        Some(branch) => format!("Remote branch {branch} not found in upstream origin"),
        None => "the repository has no default branch; name one with branch=...".to_owned(),
    }))
}

fn callbacks<'a>(plan: &'a Plan, stop: &Arc<AtomicBool>, refusal: &Refusal) -> RemoteCallbacks<'a> {
    let mut callbacks = RemoteCallbacks::new();
    let mut offered = false;
    let refuse = refusal.clone();
    callbacks.credentials(move |url, _, allowed| {
        offer(plan, url, allowed, &mut offered).map_err(|reason| refuse.set(reason))
    });
    let refuse = refusal.clone();
    callbacks.certificate_check(move |certificate, _| {
        let Some(key) = certificate.as_hostkey() else {
            // TLS: what the library has found stands.
            return Ok(CertificateCheckStatus::CertificatePassthrough);
        };
        host_keys(plan)
            .check(key.hostkey().unwrap_or_default())
            .map(|()| CertificateCheckStatus::CertificateOk)
            .map_err(|error| refuse.set(error.to_string()))
    });
    let (refuse, stopped) = (refusal.clone(), Arc::clone(stop));
    callbacks.transfer_progress(move |progress| {
        if progress.received_bytes() > MAX_RECEIVED {
            refuse.set(format!("it is larger than {MAX_RECEIVED} bytes"));
            return false;
        }
        !stopped.load(Ordering::Acquire)
    });
    let stopped = Arc::clone(stop);
    callbacks.sideband_progress(move |_| !stopped.load(Ordering::Acquire));
    callbacks
}

/// The credential, if this is the first time and the right host asks.
fn offer(
    plan: &Plan,
    url: &str,
    allowed: CredentialType,
    offered: &mut bool,
) -> Result<Cred, String> {
    let credential = &plan.credential;
    let host = |url: &str| Address::parse(&without_user(url)).map(|address| address.host);
    if host(url).ok() != host(&plan.url).ok() {
        return Err("another host asked for the credential, and did not get it".to_owned());
    }
    let user = plan.user.as_str();
    let made =
        |result: Result<Cred, git2::Error>| result.map_err(|error| error.message().to_owned());
    if allowed.contains(CredentialType::USERNAME) {
        return made(Cred::username(user));
    }
    if std::mem::replace(offered, true) {
        return Err("Authentication failed: the server refused the credential".to_owned());
    }
    if plan.address.transport == Transport::Ssh {
        let Some(key) = &credential.key else {
            return Err("the server asks for an SSH key, and there is none".to_owned());
        };
        let passphrase = credential
            .passphrase
            .as_ref()
            .map(|passphrase| passphrase.expose_secret());
        return made(Cred::ssh_key_from_memory(
            user,
            None,
            key.expose_secret(),
            passphrase,
        ));
    }
    match &credential.token {
        Some(token) if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) => {
            made(Cred::userpass_plaintext(user, token.expose_secret()))
        }
        Some(_) => Err("the server takes no token".to_owned()),
        None => Err(match &plan.source.conn_id {
            Some(conn_id) => format!(
                "the server asks for a credential, and connection {} has no password",
                repr_str(conn_id)
            ),
            None => {
                "the server asks for a credential: name a git connection with conn_id".to_owned()
            }
        }),
    }
}

/// libgit2 may show a URL with the user in it.
fn without_user(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => url.to_owned(),
    }
}

fn host_keys(plan: &Plan) -> HostKeys {
    let own = std::env::var_os("HOME").map(|home| Path::new(&home).join(".ssh/known_hosts"));
    let mut files: Vec<PathBuf> = plan
        .credential
        .known_hosts
        .clone()
        .or(own)
        .into_iter()
        .collect();
    files.push("/etc/ssh/ssh_known_hosts".into());
    HostKeys {
        checking: plan.credential.checking,
        files,
        host: plan.known_as.clone(),
    }
}

/// Refuses a tree that would fill the disk, before anything of it is written out.
fn check_size(repository: &Repository, commit: Oid, refusal: &Refusal) -> Result<(), git2::Error> {
    let tree = repository.find_commit(commit)?.tree()?;
    let objects = repository.odb()?;
    let (mut files, mut bytes) = (0_u64, 0_u64);
    let mut broken = None;
    let walked = tree.walk(TreeWalkMode::PreOrder, |_, entry| {
        if entry.kind() == Some(ObjectType::Blob) {
            files += 1;
            match objects.read_header(entry.id()) {
                Ok((size, _)) => bytes = bytes.saturating_add(size as u64),
                Err(error) => broken = Some(error),
            }
        }
        if broken.is_some() || files > MAX_FILES || bytes > MAX_CHECKOUT {
            TreeWalkResult::Abort
        } else {
            TreeWalkResult::Ok
        }
    });
    if let Some(error) = broken {
        return Err(error);
    }
    if files > MAX_FILES || bytes > MAX_CHECKOUT {
        return Err(refusal.set(format!(
            "its files are too many or too large: at most {MAX_FILES} files and {MAX_CHECKOUT} bytes are checked out"
        )));
    }
    walked
}
