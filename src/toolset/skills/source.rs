//! Where skills come from, and the way from there to folders on this machine.

use std::path::{Component, Path, PathBuf};

use super::SkillsError;
use super::git;
use crate::hook::ConnectionSource;
use crate::toolset::work_folder::WorkFolder;

/// Skills in a git repository: `GitSkills` of the Dag file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitSkills {
    /// `https://...`, `ssh://...` or `git@host:path`; without credentials in it.
    pub repo_url: String,
    /// A connection of type `git`: a token, or an SSH key.
    pub conn_id: Option<String>,
    /// The folder within the repository.
    pub path: String,
    /// A branch, a tag or a full reference name; `None`: the repository's default branch.
    pub branch: Option<String>,
}

/// A folder or a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillSource {
    /// A folder; a relative one lies below the Dag file's own folder.
    Folder(PathBuf),
    /// A repository, cloned for one run.
    Git(GitSkills),
}

/// Folders that hold skills. Clones among them are removed when this is dropped.
#[derive(Debug)]
pub struct ResolvedSkills {
    folders: Vec<PathBuf>,
    clones: Vec<WorkFolder>,
}

impl ResolvedSkills {
    /// One folder for each source, in their order.
    #[must_use]
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }
}

/// Turns sources into folders, cloning repositories with the credentials of their connections: `resolve_skills` of the
/// Python provider, for any framework that reads folders with a SKILL.md.
///
/// Relative folders lie below `base`. When the returned value is dropped, or the future before it is done, the clones
/// are removed.
///
/// # Errors
/// See [`SkillsError`]. What was cloned by then is removed.
pub async fn resolve_skills(
    sources: &[SkillSource],
    base: &Path,
    connections: &dyn ConnectionSource,
) -> Result<ResolvedSkills, SkillsError> {
    let mut resolved = ResolvedSkills {
        folders: Vec::new(),
        clones: Vec::new(),
    };
    for source in sources {
        match source {
            SkillSource::Folder(folder) => {
                resolved.folders.push(base.join(expand_home(folder)));
            }
            SkillSource::Git(git) => {
                let clone = git::clone(git, connections).await?;
                let folder = below(clone.path(), &git.path)?;
                resolved.clones.push(clone);
                resolved.folders.push(folder);
            }
        }
    }
    Ok(resolved)
}

/// `~/skills` of the worker's user.
fn expand_home(folder: &Path) -> PathBuf {
    match (folder.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.to_owned(),
    }
}

/// A folder of a clone. A link in the repository must not lead out of it.
fn below(clone: &Path, path: &str) -> Result<PathBuf, SkillsError> {
    let folder = clone.join(path);
    match folder.canonicalize() {
        Ok(real) if !real.starts_with(clone) => Err(SkillsError::PathLeadsOut(path.to_owned())),
        Ok(real) => Ok(real),
        // Nothing there: a source without skills, as in Airflow.
        Err(_) => Ok(folder),
    }
}

/// Is the path one within a repository?
pub(super) fn check_path(path: &str) -> Result<(), SkillsError> {
    let mut depth = 0_i32;
    for component in Path::new(path).components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir => depth -= 1,
            Component::RootDir | Component::Prefix(_) => depth = -1,
        }
        if depth < 0 {
            return Err(SkillsError::PathOutside(path.to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_must_stay_inside_the_repository() {
        for good in ["", "skills", "a/../b", "./a", "a/.."] {
            assert!(check_path(good).is_ok(), "{good}");
        }
        for bad in ["/abs", "..", "../x", "a/../../x"] {
            assert_eq!(
                check_path(bad).unwrap_err().to_string(),
                format!(
                    "GitSkills path must be a relative sub-path inside the repository; got '{bad}'."
                )
            );
        }
    }

    #[test]
    fn a_link_in_a_clone_must_not_lead_out_of_it() {
        let clone = tempfile::tempdir().unwrap();
        let root = clone.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("skills")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("etc")).unwrap();
        std::os::unix::fs::symlink("skills", root.join("alias")).unwrap();
        assert_eq!(below(&root, "alias").unwrap(), root.join("skills"));
        assert_eq!(below(&root, "none").unwrap(), root.join("none"));
        assert!(matches!(
            below(&root, "etc"),
            Err(SkillsError::PathLeadsOut(_))
        ));
    }
}
