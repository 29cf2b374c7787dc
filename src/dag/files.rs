//! Which files Dag code may see: the bundle it came from and the folders that were opened to it, for reading only.
//!
//! Paths are judged after symbolic links are followed, so that a link inside the bundle gives no way out of it.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

/// What the interpreter may read.
#[derive(Debug)]
pub struct ReadableFiles {
    /// Where relative paths start: the bundle's root as it was given.
    cwd: PathBuf,
    /// Resolved roots.
    roots: Vec<PathBuf>,
    /// Folders on the way to a root, whose existence is no secret: `Path.resolve()` looks at each of them.
    above: Vec<PathBuf>,
    /// Resolved roots that are open for a while.
    lent: RwLock<Vec<PathBuf>>,
    open: Mutex<Descriptors>,
}

/// Open files by descriptor. The numbers are the interpreter's own and mean nothing to the operating system.
#[derive(Debug, Default)]
struct Descriptors {
    last: i32,
    files: HashMap<i32, File>,
}

/// Why a path was refused.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Outside the readable folders.
    #[error("Dag code on this worker may read only files of its bundle")]
    Outside,
    /// The operating system's own answer.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ReadableFiles {
    /// Opens `bundle_root` and `readable` for reading. Folders that don't exist are left out.
    pub fn new(bundle_root: &Path, readable: &[PathBuf]) -> Self {
        let given: Vec<PathBuf> = std::iter::once(bundle_root)
            .chain(readable.iter().map(PathBuf::as_path))
            .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
            .collect();
        let roots: Vec<PathBuf> = given
            .iter()
            .filter_map(|path| path.canonicalize().ok())
            .collect();
        let above = given
            .iter()
            .chain(&roots)
            .flat_map(|path| path.ancestors().map(Path::to_owned))
            .collect();
        let cwd = given
            .into_iter()
            .next()
            .unwrap_or_else(|| PathBuf::from("/"));
        Self {
            cwd,
            roots,
            above,
            lent: RwLock::default(),
            open: Mutex::default(),
        }
    }

    /// What `os.getcwd()` says.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The file that `path` names, with every symbolic link followed.
    ///
    /// # Errors
    /// It leads outside, or is not there.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, FileError> {
        let path = self.cwd.join(path);
        match path.canonicalize() {
            Ok(resolved) if self.is_inside(&resolved) => Ok(resolved),
            Ok(_) => Err(FileError::Outside),
            Err(error) => Err(self.absent(&path, error)),
        }
    }

    /// As `resolve`, but a symbolic link at the end of the path is not followed.
    fn resolve_link(&self, path: &Path) -> Result<PathBuf, FileError> {
        let path = self.cwd.join(path);
        let (Some(parent), Some(Component::Normal(name))) =
            (path.parent(), path.components().next_back())
        else {
            return self.resolve(&path);
        };
        match parent.canonicalize() {
            Ok(parent) if self.is_inside(&parent) => Ok(parent.join(name)),
            Ok(parent) => {
                let resolved = parent.join(name);
                if self.roots.contains(&resolved) {
                    Ok(resolved)
                } else {
                    Err(FileError::Outside)
                }
            }
            Err(error) => Err(self.absent(&path, error)),
        }
    }

    /// Opens a folder for a while, with every symbolic link followed already.
    pub fn lend(&self, folder: PathBuf) {
        self.lent().push(folder);
    }

    /// Ends what `lend` began. What is open stays open.
    pub fn take_back(&self, folder: &Path) {
        let mut lent = self.lent();
        if let Some(index) = lent.iter().position(|known| known == folder) {
            lent.swap_remove(index);
        }
    }

    fn lent(&self) -> RwLockWriteGuard<'_, Vec<PathBuf>> {
        self.lent.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_inside(&self, resolved: &Path) -> bool {
        let lent = self.lent.read().unwrap_or_else(PoisonError::into_inner);
        self.roots
            .iter()
            .chain(lent.iter())
            .any(|root| resolved.starts_with(root))
    }

    /// Is the path a folder on the way to a root?
    fn is_above(&self, path: &Path) -> bool {
        let path = self.cwd.join(path);
        let lent = self.lent.read().unwrap_or_else(PoisonError::into_inner);
        self.above.contains(&path) || lent.iter().any(|root| root.starts_with(&path))
    }

    /// A path that can't be resolved: the reason is told only when it would lie inside.
    fn absent(&self, path: &Path, error: io::Error) -> FileError {
        let nearest = path
            .ancestors()
            .find_map(|ancestor| ancestor.canonicalize().ok());
        match nearest {
            Some(ancestor) if self.is_inside(&ancestor) => FileError::Io(error),
            _ => FileError::Outside,
        }
    }

    /// `os.stat`.
    ///
    /// # Errors
    /// As `resolve`.
    pub fn stat(&self, path: &Path) -> Result<Metadata, FileError> {
        if self.is_above(path) {
            return Ok(self.cwd.join(path).metadata()?);
        }
        Ok(self.resolve(path)?.metadata()?)
    }

    /// `os.lstat`.
    ///
    /// # Errors
    /// As `resolve`, but a link may point anywhere.
    pub fn lstat(&self, path: &Path) -> Result<Metadata, FileError> {
        if self.is_above(path) {
            return Ok(self.cwd.join(path).symlink_metadata()?);
        }
        Ok(self.resolve_link(path)?.symlink_metadata()?)
    }

    /// `os.readlink`.
    ///
    /// # Errors
    /// As `lstat`.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, FileError> {
        if self.is_above(path) {
            return Ok(self.cwd.join(path).read_link()?);
        }
        Ok(self.resolve_link(path)?.read_link()?)
    }

    /// `os.listdir`, sorted so that Dags made from a folder's files always come in one order.
    ///
    /// # Errors
    /// As `resolve`.
    pub fn list(&self, path: &Path) -> Result<Vec<std::ffi::OsString>, FileError> {
        let mut names = self
            .resolve(path)?
            .read_dir()?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    /// `os.open` for reading; gives a descriptor.
    ///
    /// # Errors
    /// As `resolve`.
    pub fn open(&self, path: &Path) -> Result<i32, FileError> {
        let resolved = self.resolve(path)?;
        // Opening a FIFO would block for ever; a device has no place in a bundle.
        let metadata = resolved.metadata()?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(FileError::Outside);
        }
        let file = File::open(resolved)?;
        let mut open = self.descriptors();
        // 0, 1 and 2 are the standard streams.
        open.last = open.last.max(2) + 1;
        let descriptor = open.last;
        open.files.insert(descriptor, file);
        Ok(descriptor)
    }

    /// `os.read`: at most `count` bytes, or all that is left.
    ///
    /// # Errors
    /// No such descriptor, or the read failed.
    pub fn read(&self, descriptor: i32, count: Option<usize>) -> Result<Vec<u8>, FileError> {
        self.with(descriptor, |file| {
            let mut bytes = Vec::new();
            match count {
                Some(count) => file.take(count as u64).read_to_end(&mut bytes)?,
                None => file.read_to_end(&mut bytes)?,
            };
            Ok(bytes)
        })
    }

    /// `os.lseek`.
    ///
    /// # Errors
    /// No such descriptor, or the position is before the start.
    pub fn seek(&self, descriptor: i32, to: SeekFrom) -> Result<u64, FileError> {
        self.with(descriptor, |file| file.seek(to))
    }

    /// `os.fstat`.
    ///
    /// # Errors
    /// No such descriptor.
    pub fn fstat(&self, descriptor: i32) -> Result<Metadata, FileError> {
        self.with(descriptor, |file| file.metadata())
    }

    /// `os.close`.
    ///
    /// # Errors
    /// No such descriptor.
    pub fn close(&self, descriptor: i32) -> Result<(), FileError> {
        self.descriptors()
            .files
            .remove(&descriptor)
            .map(drop)
            .ok_or_else(bad_descriptor)
    }

    fn with<T>(
        &self,
        descriptor: i32,
        f: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> Result<T, FileError> {
        let mut open = self.descriptors();
        Ok(f(open
            .files
            .get_mut(&descriptor)
            .ok_or_else(bad_descriptor)?)?)
    }

    fn descriptors(&self) -> MutexGuard<'_, Descriptors> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bad_descriptor() -> FileError {
    FileError::Io(io::Error::from_raw_os_error(
        nix::errno::Errno::EBADF as i32,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> (tempfile::TempDir, ReadableFiles) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("bundle");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/a.txt"), "hello").unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret"), root.join("way-out")).unwrap();
        std::os::unix::fs::symlink("sub/a.txt", root.join("inner")).unwrap();
        let files = ReadableFiles::new(&root, &[]);
        (folder, files)
    }

    #[test]
    fn a_relative_path_starts_at_the_bundle_and_links_inside_it_are_followed() {
        let (_folder, files) = bundle();
        let descriptor = files.open(Path::new("inner")).unwrap();
        assert_eq!(files.read(descriptor, Some(2)).unwrap(), b"he");
        assert_eq!(files.read(descriptor, None).unwrap(), b"llo");
        files.close(descriptor).unwrap();
        assert!(files.close(descriptor).is_err());
    }

    #[test]
    fn nothing_outside_the_bundle_can_be_seen_not_even_through_a_link_or_dots() {
        let (folder, files) = bundle();
        for path in ["way-out", "../secret", "/etc/passwd", "sub/../../secret"] {
            assert!(
                matches!(files.open(Path::new(path)), Err(FileError::Outside)),
                "{path}"
            );
            assert!(
                matches!(files.stat(Path::new(path)), Err(FileError::Outside)),
                "{path}"
            );
        }
        assert!(matches!(
            files.stat(&folder.path().join("absent")),
            Err(FileError::Outside)
        ));
        assert!(files.lstat(Path::new("way-out")).unwrap().is_symlink());
        assert!(files.lstat(Path::new("../secret")).is_err());
    }

    #[test]
    fn a_file_that_is_not_there_is_not_found_rather_than_refused() {
        let (_folder, files) = bundle();
        let FileError::Io(error) = files.open(Path::new("sub/b.txt")).unwrap_err() else {
            panic!()
        };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
