//! Landlock: what a skill's script may touch, enforced by the kernel.
//!
//! The rules bind the thread that sets them and every process it starts from then on, for good. So a script is started
//! from a thread of its own, which ends right after; nothing needs to run between `fork` and `exec`.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

/// Programs and their libraries.
pub(crate) const SYSTEM: [&str; 8] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
];
/// What ordinary programs read when they start, and nothing that tells of other processes or holds keys.
pub(crate) const READABLE: [&str; 11] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
];
pub(crate) const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// What a script may touch besides the system's programs.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Read and run: the skill's folder, and where its interpreter lives.
    pub readable: Vec<PathBuf>,
    /// Do anything.
    pub scratch: PathBuf,
}

/// Binds this thread and what it starts. False when the kernel has no Landlock.
pub(super) fn confine_this_thread(rules: &Rules) -> Result<bool, RulesetError> {
    // The newest rights that are known here; the kernel takes those it knows.
    let abi = ABI::V6;
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        // Neither signals to the worker nor its abstract sockets.
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules(READABLE, AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules(
            python_settings(),
            AccessFs::from_read(abi),
        ))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(
            &rules.readable,
            AccessFs::from_read(abi),
        ))?
        .add_rules(path_beneath_rules(
            [&rules.scratch],
            AccessFs::from_all(abi),
        ))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Debian's Python reads a file in here whenever it starts.
fn python_settings() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path())
        .collect()
}

/// Where a program's own files lie when that is no place of the system: the folder above its `bin`.
pub(super) fn home_of(program: &Path) -> Vec<PathBuf> {
    let mut homes = Vec::new();
    for path in [Some(program.to_owned()), program.canonicalize().ok()]
        .into_iter()
        .flatten()
    {
        if SYSTEM.iter().any(|system| path.starts_with(system)) {
            continue;
        }
        let home = path.parent().filter(|bin| bin.ends_with("bin"));
        match home.and_then(Path::parent) {
            Some(home) if home.join("lib").is_dir() => homes.push(home.to_owned()),
            _ => homes.push(path),
        }
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confined_thread_reads_what_it_may_and_nothing_else() {
        let allowed = tempfile::tempdir().unwrap();
        let denied = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(allowed.path().join("a"), "a").unwrap();
        std::fs::write(denied.path().join("b"), "b").unwrap();
        let rules = Rules {
            readable: vec![allowed.path().to_owned()],
            scratch: scratch.path().to_owned(),
        };
        std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                assert!(
                    confine_this_thread(&rules).unwrap(),
                    "the tests need a kernel with Landlock"
                );
                assert!(std::fs::read(allowed.path().join("a")).is_ok());
                assert!(std::fs::write(allowed.path().join("a"), "x").is_err());
                assert!(std::fs::read(denied.path().join("b")).is_err());
                assert!(std::fs::read("/proc/self/environ").is_err());
                assert!(std::fs::write(scratch.path().join("c"), "c").is_ok());
            });
            confined.join().unwrap();
        });
        // The other threads are as free as before.
        assert!(std::fs::read(denied.path().join("b")).is_ok());
    }

    #[test]
    fn an_interpreter_outside_the_system_brings_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::write(root.join("bin/python3"), "").unwrap();
        let program = root.join("bin/python3");
        assert_eq!(home_of(&program)[0], program);
        std::fs::create_dir_all(root.join("lib")).unwrap();
        assert_eq!(home_of(&program)[0], root);
        assert!(home_of(Path::new("/usr/bin/env")).is_empty());
    }
}
