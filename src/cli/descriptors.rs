//! Open files that this process has from whoever started it.

use std::os::fd::RawFd;

/// Closes all but standard input, output and error: a worker and its tasks have no business with what a shell or a
/// service manager had open. For the very beginning, when this process has opened nothing itself.
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<RawFd> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in open {
        // The folder itself was among them, and is closed already.
        let _ = nix::unistd::close(number);
    }
}
