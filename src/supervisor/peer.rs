//! Whose end of a loopback connection is this? A supervisor talks to its own task process and to nobody else on the
//! machine, and a port number alone proves nothing.

use std::net::SocketAddr;

/// Does the process that holds the other end of this connection belong to the process group `group`?
///
/// Read from Linux's `/proc`. Where there is no `/proc` the answer is yes: the port was told to the child alone.
#[must_use]
pub(crate) fn belongs_to_group(peer: SocketAddr, local: SocketAddr, group: u32) -> bool {
    let Ok(table) = std::fs::read_to_string("/proc/net/tcp") else {
        return true;
    };
    let Some(inode) = socket_inode(&table, peer, local) else {
        return false;
    };
    let wanted = format!("socket:[{inode}]");
    // The child itself is the usual answer, and spares reading about every process of the machine.
    holds(group, &wanted)
        || processes()
            .any(|pid| pid != group && process_group(pid) == Some(group) && holds(pid, &wanted))
}

/// The inode of the socket whose local end is `peer`, as seen from `local`.
fn socket_inode(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u64> {
    let (peer, local) = (proc_address(peer)?, proc_address(local)?);
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let matches = fields.next()? == peer && fields.next()? == local;
        // After the two addresses: state, queues, timer, retransmits, uid, timeout, inode.
        let inode = fields.nth(6)?;
        if matches { inode.parse().ok() } else { None }
    })
}

/// `0100007F:1F90`: the address in the machine's byte order, the port in the network's.
fn proc_address(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else {
        return None;
    };
    let octets = u32::from_ne_bytes(address.ip().octets());
    Some(format!("{octets:08X}:{:04X}", address.port()))
}

fn holds(pid: u32, socket: &str) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    descriptors.flatten().any(|entry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == socket)
    })
}

fn processes() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn process_group(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name stands in parentheses and may hold anything; state, parent and group follow it.
    stat.rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(2)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_connection_belongs_to_the_group_of_the_process_that_made_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        let local = accepted.local_addr().unwrap();
        let own_group = process_group(std::process::id()).unwrap();
        assert_eq!(peer, stream.local_addr().unwrap());
        assert!(belongs_to_group(peer, local, own_group));
        assert!(!belongs_to_group(peer, local, 1));
    }
}
