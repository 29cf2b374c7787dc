//! Finds skills in folders: their SKILL.md, what can be read of them and what can be run.
//!
//! A model names resources and scripts, and only names that were found here are looked up, so that no text of a model
//! becomes a path. What is found is contained as well: a file counts where it really lies, so that a link out of its
//! skill is none, and whatever is no regular file (a FIFO, a device, a socket) is none either.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use serde_json::Value;

use super::SkillsError;
use super::manifest::Manifest;
use crate::airflow::yaml;

/// How deep below a source a SKILL.md may lie.
const MAX_DEPTH: usize = 3;
/// Entries that are looked at below one source. A folder with more is no folder of skills.
const MAX_ENTRIES: usize = 50_000;
/// Bytes of a SKILL.md.
const MAX_MANIFEST: u64 = 1 << 20;
/// Bytes of a resource that is read.
const MAX_RESOURCE: u64 = 10 << 20;
/// A file is taken for text by its first bytes.
const SNIFF: u64 = 65_536;

const SCRIPT_ENDINGS: [&str; 8] = ["py", "sh", "bash", "zsh", "fish", "ps1", "bat", "cmd"];
const EXCLUDED: [&str; 5] = ["__pycache__", "*.pyc", "*.pyo", ".DS_Store", ".git"];

/// A skill.
#[derive(Clone, Debug)]
pub(super) struct Skill {
    pub name: String,
    pub description: String,
    pub instructions: String,
    /// Absolute, without links.
    pub folder: PathBuf,
    pub resources: Vec<SkillFile>,
    pub scripts: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkillFile {
    /// The path below the skill's folder, with `/`.
    pub name: String,
    /// Where it really lies: absolute, without links.
    pub path: PathBuf,
}

impl Skill {
    pub fn resource(&self, name: &str) -> Option<&SkillFile> {
        self.resources.iter().find(|file| file.name == name)
    }

    pub fn script(&self, name: &str) -> Option<&SkillFile> {
        self.scripts.iter().find(|file| file.name == name)
    }
}

/// All skills below the folders. A later skill takes the place of an earlier one of the same name.
///
/// A folder that is not there has none. `exclude_resources` are patterns of files that are no resources.
///
/// # Errors
/// A SKILL.md that can't be used, or far too many files.
pub(super) fn discover(
    folders: &[PathBuf],
    exclude_resources: &[String],
) -> Result<Vec<Skill>, SkillsError> {
    let mut skills: Vec<Skill> = Vec::new();
    for folder in folders {
        let Ok(root) = folder.canonicalize() else {
            tracing::warn!("The skills folder {} is not there.", folder.display());
            continue;
        };
        if !root.is_dir() {
            continue;
        }
        let mut walk = Walk {
            root: &root,
            entries: 0,
        };
        for skill_folder in walk.skill_folders()? {
            let skill = walk.skill(skill_folder, exclude_resources)?;
            match skills.iter_mut().find(|known| known.name == skill.name) {
                Some(known) => {
                    tracing::warn!(
                        "Skill {:?} in {} takes the place of the one in {}.",
                        skill.name,
                        skill.folder.display(),
                        known.folder.display()
                    );
                    *known = skill;
                }
                None => skills.push(skill),
            }
        }
    }
    Ok(skills)
}

/// A resource's text; JSON and YAML are parsed where they can be.
///
/// # Errors
/// What is wrong, as a sentence.
pub(super) fn read_resource(skill: &Skill, resource: &SkillFile) -> Result<Value, String> {
    let text = read_text(&skill.folder, &resource.path, MAX_RESOURCE)?;
    let ending = Path::new(&resource.name)
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    Ok(match ending.as_deref() {
        Some("json") => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Some("yaml" | "yml") => yaml::load(&text).unwrap_or(Value::String(text)),
        _ => Value::String(text),
    })
}

/// Opens a regular file inside `folder`. It may have been exchanged since it was found, so everything is checked anew.
fn open_inside(folder: &Path, path: &Path) -> Result<File, String> {
    let real = path
        .canonicalize()
        .map_err(|error| format!("it can't be read: {error}"))?;
    if !real.starts_with(folder) {
        return Err("it leads out of the skill's folder".to_owned());
    }
    // A FIFO would wait for a writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK | O_NOFOLLOW)
        .open(&real)
        .map_err(|error| format!("it can't be read: {error}"))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(_) => Err("it is not a regular file".to_owned()),
        Err(error) => Err(format!("it can't be read: {error}")),
    }
}

fn read_text(folder: &Path, path: &Path, most: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    open_inside(folder, path)?
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("it can't be read: {error}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

struct Walk<'a> {
    root: &'a Path,
    entries: usize,
}

impl Walk<'_> {
    /// The entries of a folder, in the order of their names. A folder that can't be read has none.
    fn list(&mut self, folder: &Path) -> Result<Vec<PathBuf>, SkillsError> {
        let Ok(entries) = fs::read_dir(folder) else {
            return Ok(Vec::new());
        };
        let mut paths = Vec::new();
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(SkillsError::TooManyFiles {
                    folder: self.root.to_owned(),
                    most: MAX_ENTRIES,
                });
            }
            paths.push(entry.path());
        }
        paths.sort();
        Ok(paths)
    }

    /// Folders with a SKILL.md, those that lie higher first.
    fn skill_folders(&mut self) -> Result<Vec<PathBuf>, SkillsError> {
        let mut found = Vec::new();
        let mut level = vec![self.root.to_owned()];
        for depth in 0..=MAX_DEPTH {
            let mut next = Vec::new();
            for folder in level {
                let manifest = folder.join("SKILL.md");
                if manifest.symlink_metadata().is_ok() {
                    match manifest.canonicalize() {
                        Ok(real) if real.starts_with(self.root) && real.is_file() => {
                            found.push(folder.clone());
                        }
                        _ => tracing::warn!(
                            "{} is no regular file inside {}: it is passed over.",
                            manifest.display(),
                            self.root.display()
                        ),
                    }
                }
                if depth == MAX_DEPTH {
                    continue;
                }
                for path in self.list(&folder)? {
                    let Ok(metadata) = path.symlink_metadata() else {
                        continue;
                    };
                    if metadata.is_symlink() {
                        match path.canonicalize() {
                            Ok(real) if !real.is_dir() => {}
                            // A folder that is reached twice would be two skills of one name.
                            Ok(real) if real.starts_with(self.root) => {}
                            _ => tracing::warn!(
                                "{} leads out of {}: it is passed over.",
                                path.display(),
                                self.root.display()
                            ),
                        }
                    } else if metadata.is_dir() {
                        next.push(path);
                    }
                }
            }
            level = next;
        }
        Ok(found)
    }

    fn skill(
        &mut self,
        folder: PathBuf,
        exclude_resources: &[String],
    ) -> Result<Skill, SkillsError> {
        let file = folder.join("SKILL.md");
        let text = read_text(self.root, &file, MAX_MANIFEST).map_err(|reason| {
            SkillsError::Unreadable {
                file: file.clone(),
                reason,
            }
        })?;
        let manifest = Manifest::parse(&text, &folder).map_err(|source| SkillsError::Manifest {
            file: file.clone(),
            source,
        })?;
        for remark in &manifest.remarks {
            tracing::warn!("{remark}");
        }
        let scripts = self.scripts(&folder)?;
        let resources = self.resources(&folder, exclude_resources, &scripts)?;
        Ok(Skill {
            name: manifest.name,
            description: manifest.description,
            instructions: manifest.instructions,
            folder,
            resources,
            scripts,
        })
    }

    fn scripts(&mut self, folder: &Path) -> Result<Vec<SkillFile>, SkillsError> {
        let mut scripts = Vec::new();
        for place in [folder.to_owned(), folder.join("scripts")] {
            if !place.is_dir() {
                continue;
            }
            for path in self.list(&place)? {
                // What is wrong with a file is told when resources are looked for.
                if let Ok(file) = contained(folder, &path)
                    && is_script(&file)
                {
                    scripts.push(file);
                }
            }
        }
        Ok(scripts)
    }

    fn resources(
        &mut self,
        folder: &Path,
        exclude: &[String],
        scripts: &[SkillFile],
    ) -> Result<Vec<SkillFile>, SkillsError> {
        let mut resources = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(place) = folders.pop() {
            for path in self.list(&place)? {
                // `is_dir` of the entry itself: linked folders are not entered, so that there are no circles.
                if path
                    .symlink_metadata()
                    .is_ok_and(|metadata| metadata.is_dir())
                {
                    // What is excluded by its own name is excluded with everything in it.
                    if !is_excluded(
                        &path.strip_prefix(folder).unwrap_or(&path).to_string_lossy(),
                        &[],
                    ) {
                        folders.push(path);
                    }
                    continue;
                }
                let file = match contained(folder, &path) {
                    Ok(file) => file,
                    Err(reason) => {
                        if let Some(reason) = reason {
                            tracing::warn!("{path:?} {reason}: it is passed over.");
                        }
                        continue;
                    }
                };
                let is_manifest = path
                    .file_name()
                    .is_some_and(|name| name.to_string_lossy().to_uppercase() == "SKILL.MD");
                if !is_manifest
                    && !is_excluded(&file.name, exclude)
                    && !scripts.iter().any(|script| script.path == file.path)
                    && is_text(folder, &file.path)
                {
                    resources.push(file);
                }
            }
        }
        resources.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(resources)
    }
}

/// The file, if it is a regular one that really lies inside `folder` and has a name that can be written; else why it
/// is none, where that is worth telling.
fn contained(folder: &Path, path: &Path) -> Result<SkillFile, Option<&'static str>> {
    let Ok(real) = path.canonicalize() else {
        return Err(None);
    };
    if !real.is_file() {
        return Err(None);
    }
    let Some(name) = path.strip_prefix(folder).ok().and_then(Path::to_str) else {
        return Err(Some("has a name that is not UTF-8"));
    };
    if name.chars().any(char::is_control) {
        return Err(Some("has control characters in its name"));
    }
    if !real.starts_with(folder) {
        return Err(Some("leads out of the skill's folder"));
    }
    Ok(SkillFile {
        name: name.to_owned(),
        path: real,
    })
}

fn is_script(file: &SkillFile) -> bool {
    let name = Path::new(&file.name);
    if name
        .file_name()
        .is_some_and(|name| name == "__init__.py" || name == "SKILL.md")
    {
        return false;
    }
    let ending = name
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| SCRIPT_ENDINGS.contains(&ending.as_str()))
        || file
            .path
            .metadata()
            .is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

fn is_text(folder: &Path, path: &Path) -> bool {
    let Ok(file) = open_inside(folder, path) else {
        return false;
    };
    let size = file.metadata().map_or(0, |metadata| metadata.size());
    let mut bytes = Vec::new();
    if file.take(SNIFF).read_to_end(&mut bytes).is_err() {
        return false;
    }
    match std::str::from_utf8(&bytes) {
        Ok(_) => true,
        // A character that the end of the piece cuts in two.
        Err(error) => error.error_len().is_none() && size > SNIFF,
    }
}

/// Does a pattern fit the whole path or one part of it?
fn is_excluded(name: &str, patterns: &[String]) -> bool {
    EXCLUDED
        .into_iter()
        .chain(patterns.iter().map(String::as_str))
        .any(|pattern| {
            matches_glob(pattern, name) || name.split('/').any(|part| matches_glob(pattern, part))
        })
}

/// Python's `fnmatch`: `*` and `?` fit `/` too, `[abc]`, `[a-z]` and `[!a]` are sets.
pub(super) fn matches_glob(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // Where to go on when the text does not fit: the last star, one character further.
    let (mut p, mut t) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                again = Some((p, t));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => one_of(&pattern, p, text.get(t).copied().unwrap_or_default()),
            Some(c) if text.get(t) == Some(c) => Some(p + 1),
            _ => None,
        };
        match (step, again) {
            (Some(next), _) => {
                p = next;
                t += 1;
            }
            (None, Some((star, from))) => {
                again = Some((star, from + 1));
                p = star + 1;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

/// The place after the set that begins at `start`, if it holds `c`. A `[` without its `]` stands for itself.
fn one_of(pattern: &[char], start: usize, c: char) -> Option<usize> {
    let negated = pattern.get(start + 1) == Some(&'!');
    let first = start + 1 + usize::from(negated);
    // A `]` that comes first is one of the set.
    let Some(end) = (first + 1..pattern.len()).find(|&at| pattern.get(at) == Some(&']')) else {
        return (c == '[').then_some(start + 1);
    };
    let set = pattern.get(first..end).unwrap_or_default();
    let mut holds = false;
    let mut at = 0;
    while let Some(&low) = set.get(at) {
        if set.get(at + 1) == Some(&'-')
            && let Some(&high) = set.get(at + 2)
        {
            holds |= (low..=high).contains(&c);
            at += 3;
        } else {
            holds |= low == c;
            at += 1;
        }
    }
    (holds != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn write(root: &Path, name: &str, text: impl AsRef<[u8]>) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn skill(root: &Path, folder: &str, name: &str) {
        let text = format!("---\nname: {name}\ndescription: About {name}.\n---\nDo {name}.\n");
        write(root, &format!("{folder}/SKILL.md"), text);
    }

    fn names(files: &[SkillFile]) -> Vec<&str> {
        files.iter().map(|file| file.name.as_str()).collect()
    }

    fn found(root: &Path) -> Vec<Skill> {
        discover(&[root.to_owned()], &[]).unwrap()
    }

    #[test]
    fn skills_are_found_down_to_the_third_level_and_no_further() {
        let root = tempfile::tempdir().unwrap();
        skill(root.path(), ".", "top");
        skill(root.path(), "a", "one");
        skill(root.path(), "b/c/d", "three");
        skill(root.path(), "b/c/d/e", "four");
        let names: Vec<String> = found(root.path()).into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["top", "one", "three"]);
        assert!(
            discover(&["/nowhere/at/all".into()], &[])
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_later_skill_of_the_same_name_takes_the_earlier_ones_place() {
        let root = tempfile::tempdir().unwrap();
        skill(root.path(), "a/x", "same");
        skill(root.path(), "b/x", "same");
        let folders = [root.path().join("a"), root.path().join("b")];
        let skills = discover(&folders, &[]).unwrap();
        assert_eq!(skills.len(), 1);
        assert!(skills[0].folder.ends_with("b/x"));
    }

    #[test]
    fn a_broken_skill_is_an_error_that_names_its_file() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "x/SKILL.md", "---\ndescription: d\n---\n");
        let error = discover(&[root.path().to_owned()], &[]).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("x/SKILL.md") && text.contains("is missing the required \"name\" field"),
            "{text}"
        );
    }

    #[test]
    fn scripts_and_resources_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        skill(root.path(), "x", "x");
        for name in [
            "go.py",
            "__init__.py",
            "scripts/run.sh",
            "scripts/deep/other.sh",
            "data.json",
            "docs/REF.md",
            ".hidden",
            "docs/skill.md",
            "__pycache__/c.txt",
            ".git/config",
            "a.pyc",
        ] {
            write(root.path(), &format!("x/{name}"), "text");
        }
        write(root.path(), "x/tool", "#!/bin/sh\n");
        fs::set_permissions(
            root.path().join("x/tool"),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        write(root.path(), "x/picture.png", [0x89, 0x50, 0xff, 0xfe]);
        let mut long = "x".repeat(65_535).into_bytes();
        long.extend("é and more".as_bytes());
        write(root.path(), "x/long.txt", &long);
        let skill = &found(root.path())[0];
        assert_eq!(names(&skill.scripts), ["go.py", "tool", "scripts/run.sh"]);
        assert_eq!(
            names(&skill.resources),
            [
                ".hidden",
                "__init__.py",
                "data.json",
                "docs/REF.md",
                "long.txt",
                "scripts/deep/other.sh"
            ]
        );
        let skills = discover(
            &[root.path().to_owned()],
            &["docs/*".to_owned(), "*.json".to_owned()],
        )
        .unwrap();
        assert_eq!(
            names(&skills[0].resources),
            [
                ".hidden",
                "__init__.py",
                "long.txt",
                "scripts/deep/other.sh"
            ]
        );
    }

    #[test]
    fn what_leads_out_of_a_skill_is_not_part_of_it() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        write(outside.path(), "secret.txt", "made-up secret");
        write(outside.path(), "evil.sh", "echo");
        skill(outside.path(), "stray", "stray");
        skill(root.path(), "x", "x");
        skill(root.path(), "y", "y");
        write(root.path(), "x/real.txt", "inside");
        let x = root.path().join("x");
        symlink(outside.path().join("secret.txt"), x.join("secret.txt")).unwrap();
        symlink("../y/SKILL.md", x.join("neighbour.txt")).unwrap();
        symlink("/etc/passwd", x.join("passwd")).unwrap();
        symlink(outside.path(), x.join("folder")).unwrap();
        symlink(outside.path().join("evil.sh"), x.join("evil.sh")).unwrap();
        symlink("real.txt", x.join("alias.txt")).unwrap();
        symlink(".", x.join("circle")).unwrap();
        symlink(outside.path().join("stray"), root.path().join("stray")).unwrap();
        fs::create_dir(root.path().join("z")).unwrap();
        symlink(
            outside.path().join("stray/SKILL.md"),
            root.path().join("z/SKILL.md"),
        )
        .unwrap();
        let skills = found(root.path());
        assert_eq!(skills.len(), 2, "{skills:?}");
        assert_eq!(names(&skills[0].resources), ["alias.txt", "real.txt"]);
        assert!(skills[0].scripts.is_empty());
    }

    #[test]
    fn what_is_no_regular_file_is_no_part_of_a_skill() {
        let root = tempfile::tempdir().unwrap();
        skill(root.path(), "x", "x");
        let folder = root.path().join("x");
        nix::unistd::mkfifo(&folder.join("pipe.sh"), Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        symlink("/dev/zero", folder.join("zero")).unwrap();
        let skill = &found(root.path())[0];
        assert!(
            skill.scripts.is_empty() && skill.resources.is_empty(),
            "{skill:?}"
        );
    }

    #[test]
    fn a_file_that_is_exchanged_after_it_was_found_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        skill(root.path(), "x", "x");
        write(root.path(), "x/a.txt", "text");
        let skill = &found(root.path())[0];
        let resource = &skill.resources[0];
        assert_eq!(read_resource(skill, resource).unwrap(), json!("text"));
        fs::remove_file(&resource.path).unwrap();
        symlink("/etc/passwd", &resource.path).unwrap();
        let error = read_resource(skill, resource).unwrap_err();
        assert!(error.contains("leads out"), "{error}");
        fs::remove_file(&resource.path).unwrap();
        nix::unistd::mkfifo(&resource.path, Mode::S_IRWXU).unwrap();
        let error = read_resource(skill, resource).unwrap_err();
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn json_and_yaml_resources_are_parsed_where_they_can_be() {
        let root = tempfile::tempdir().unwrap();
        skill(root.path(), "x", "x");
        write(root.path(), "x/a.json", "{\"b\": 1.50}");
        write(root.path(), "x/b.json", "no json");
        write(root.path(), "x/c.yml", "when: 2026-01-02\nok: yes\n");
        write(root.path(), "x/d.yaml", "a: [");
        let skill = &found(root.path())[0];
        let values: Vec<String> = skill
            .resources
            .iter()
            .map(|resource| read_resource(skill, resource).unwrap().to_string())
            .collect();
        assert_eq!(
            values,
            [
                "{\"b\":1.50}",
                "\"no json\"",
                "{\"when\":\"2026-01-02\",\"ok\":true}",
                "\"a: [\""
            ]
        );
    }

    #[test]
    fn patterns_fit_as_pythons_fnmatch_does() {
        for (pattern, text, fits) in [
            ("*.env", "a/b.env", true),
            ("*.env", ".env", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[", "[", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("", "", true),
            ("**", "", true),
        ] {
            assert_eq!(matches_glob(pattern, text), fits, "{pattern} {text}");
        }
    }
}
