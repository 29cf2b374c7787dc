//! Counts what a database server sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use updraft::airflow::connection::Connection;

/// A connection through a relay that counts the bytes of the server's answers. It reads no faster than the client does,
/// but for what sockets hold: some megabytes.
pub async fn metered(connection: &Connection) -> (Connection, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = ("127.0.0.1", connection.port.unwrap());
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let answers = TcpStream::connect(server).await.unwrap();
            tokio::spawn(relay(client, answers, Arc::clone(&counted)));
        }
    });
    let relayed = Connection {
        port: Some(port),
        ..connection.clone()
    };
    (relayed, count)
}

async fn relay(client: TcpStream, server: TcpStream, count: Arc<AtomicU64>) {
    let (mut asks, mut hears) = client.into_split();
    let (mut answers, mut asked) = server.into_split();
    tokio::spawn(async move {
        // Either side may hang up at any time.
        tokio::io::copy(&mut asks, &mut asked).await.ok();
        asked.shutdown().await.ok();
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = answers.read(&mut buffer).await {
        count.fetch_add(read as u64, Ordering::Relaxed);
        if hears.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
}
