//! The processes below a process, read from Linux's `/proc`.

use std::collections::HashMap;

/// The children of a process, their children, and so on. Empty where there is no `/proc`.
pub(super) fn descendants(pid: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(id) = id
            && let Some(parent) = parent(id)
        {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut found = Vec::new();
    let mut left = vec![pid];
    while let Some(pid) = left.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        found.extend(&below);
        left.extend(below);
    }
    found
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name stands in parentheses and may hold anything; state and parent follow it.
    stat.rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn children_of_children_are_below_a_process_and_its_parent_is_not() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut child = Command::new("/bin/sh")
            .args(["-c", "sleep 30 & wait"])
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let grandchild = loop {
            if let Some(found) = descendants(pid).first() {
                break *found;
            }
            std::thread::yield_now();
        };
        let below = descendants(own);
        assert!(below.contains(&pid) && below.contains(&grandchild));
        assert!(!below.contains(&own) && !descendants(pid).contains(&pid));
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(grandchild),
            nix::sys::signal::Signal::SIGKILL,
        );
        child.wait().unwrap();
    }
}
