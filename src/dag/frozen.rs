//! An index of a frozen library, made when Updraft is compiled.
//!
//! The library is one long run of entries. Walking it when an interpreter starts would bring all of it into memory,
//! 6 MB for the standard library, of which a Dag file uses a tenth.

use rustpython_vm::frozen::{FrozenCodeObject, FrozenLib, FrozenModule};

/// Where an entry's parts are.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// In the index's names.
    name: (usize, usize),
    /// In the library.
    code: (usize, usize),
    package: bool,
}

/// The entries of a library and their names, side by side.
pub(super) struct Index<const ENTRIES: usize, const NAMES: usize> {
    entries: [Entry; ENTRIES],
    names: [u8; NAMES],
}

/// The four bytes at `at`, as the number that was written there.
const fn number(library: &[u8], at: usize) -> usize {
    match library.split_at(at).1.first_chunk::<4>() {
        Some(bytes) => u32::from_le_bytes(*bytes) as usize,
        None => 0,
    }
}

const fn byte(library: &[u8], at: usize) -> u8 {
    match library.split_at(at).1.first() {
        Some(byte) => *byte,
        None => 0,
    }
}

/// How many modules the library has.
pub(super) const fn entries(library: &FrozenLib) -> usize {
    number(&library.bytes, 0)
}

/// How many bytes their names take.
pub(super) const fn names(library: &FrozenLib) -> usize {
    let (mut at, mut total, mut left) = (4, 0, entries(library));
    while left > 0 {
        let name = number(&library.bytes, at);
        let code = number(&library.bytes, at + 4 + name);
        total += name;
        at += 4 + name + 4 + code + 1;
        left -= 1;
    }
    total
}

impl<const ENTRIES: usize, const NAMES: usize> Index<ENTRIES, NAMES> {
    /// Reads the library: for each module the length of its name, the name, the length of its code, the code, and
    /// whether it is a package.
    pub(super) const fn of(library: &FrozenLib) -> Self {
        let mut index = Self {
            entries: [Entry {
                name: (0, 0),
                code: (0, 0),
                package: false,
            }; ENTRIES],
            names: [0; NAMES],
        };
        let (mut at, mut named) = (4, 0);
        let mut rest: &mut [Entry] = &mut index.entries;
        let mut names: &mut [u8] = &mut index.names;
        while let Some((entry, others)) = rest.split_first_mut() {
            let name = number(&library.bytes, at);
            let text = library.bytes.split_at(at + 4).1.split_at(name).0;
            let (place, unnamed) = names.split_at_mut(name);
            place.copy_from_slice(text);
            names = unnamed;
            let code = number(&library.bytes, at + 4 + name);
            let start = at + 4 + name + 4;
            entry.name = (named, named + name);
            entry.code = (start, start + code);
            entry.package = byte(&library.bytes, start + code) != 0;
            named += name;
            at = start + code + 1;
            rest = others;
        }
        index
    }

    /// The modules of `library`, which this must be the index of.
    pub(super) fn modules(
        &'static self,
        library: &'static FrozenLib,
    ) -> impl Iterator<Item = (&'static str, FrozenModule)> {
        self.entries.iter().filter_map(|entry| {
            let name = std::str::from_utf8(self.names.get(entry.name.0..entry.name.1)?).ok()?;
            let bytes = library.bytes.get(entry.code.0..entry.code.1)?;
            Some((
                name,
                FrozenModule {
                    code: FrozenCodeObject { bytes },
                    package: entry.package,
                },
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LIBRARY: &FrozenLib = rustpython_vm::py_freeze!(dir = "stdlib");
    static INDEX: Index<{ entries(LIBRARY) }, { names(LIBRARY) }> = Index::of(LIBRARY);

    #[test]
    fn the_index_says_what_a_walk_through_the_library_says() {
        let mut walked = 0;
        for (indexed, (name, module)) in INDEX.modules(LIBRARY).zip(LIBRARY.decode()) {
            assert_eq!((indexed.0, indexed.1.package), (name, module.package));
            assert!(
                std::ptr::eq(indexed.1.code.bytes, module.code.bytes),
                "{name}"
            );
            walked += 1;
        }
        assert_eq!(walked, LIBRARY.decode().count());
        assert!(walked > 10);
    }
}
