//! A server for the files of one folder. The server also receives the report of a page, and can delay the end of the page's loading
//! until then.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::Result;

/// Longest report of a page in bytes.
const MAX_REPORT: usize = 1 << 20;
/// Time between the report and the end of the page's loading, in which the page draws its result.
const DRAWING: Duration = Duration::from_millis(500);

/// A server on the local host. Its threads run until the process ends.
pub struct Server {
    /// Port of the server.
    pub port: u16,
    reports: Receiver<String>,
}

/// What the threads of a server share.
struct Shared {
    folder: PathBuf,
    /// Whether a report has come.
    is_reported: Mutex<bool>,
    reported: Condvar,
}

impl Server {
    /// Serves the files of `folder` on `port`, or on any free port if `port` is 0.
    ///
    /// # Errors
    /// The port is in use.
    pub fn start(folder: &Path, port: u16) -> Result<Self> {
        let failed = |error: std::io::Error| format!("port {port}: {error}");
        let listener = TcpListener::bind(("127.0.0.1", port)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let shared = Arc::new(Shared { folder: folder.to_owned(), is_reported: Mutex::new(false), reported: Condvar::new() });
        let (sender, reports) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, sender) = (Arc::clone(&shared), sender.clone());
                // a connection that the browser closes early concerns no other connection
                std::thread::spawn(move || drop(shared.answer(&stream, &sender)));
            }
        });
        Ok(Server { port, reports })
    }

    /// Waits for the report of a page. `None` if no report comes within `time`.
    pub fn report(&self, time: Duration) -> Option<String> {
        self.reports.recv_timeout(time).ok()
    }

    /// Serves until the process is ended.
    pub fn serve(&self) {
        while self.reports.recv().is_ok() {}
    }
}

impl Shared {
    /// Answers the request of one connection.
    fn answer(&self, stream: &TcpStream, reports: &Sender<String>) -> std::io::Result<()> {
        let mut request = BufReader::new(stream);
        let mut first = String::new();
        request.read_line(&mut first)?;
        let length = content_length(&mut request)?;
        let mut words = first.split_whitespace();
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match (method, path(target).as_deref()) {
            ("POST", Some("report")) if length <= MAX_REPORT => {
                let mut body = vec![0; length];
                request.read_exact(&mut body)?;
                reply(stream, "200 OK", "text/plain", b"")?;
                let _ = reports.send(String::from_utf8_lossy(&body).into_owned());
                *self.is_reported.lock().expect("no thread panics with the lock") = true;
                self.reported.notify_all();
                Ok(())
            }
            ("GET", Some("hold")) => {
                let is_reported = self.is_reported.lock().expect("no thread panics with the lock");
                drop(self.reported.wait_while(is_reported, |is_reported| !*is_reported));
                std::thread::sleep(DRAWING);
                reply(stream, "404 Not Found", "text/plain", b"")
            }
            ("GET", Some(path)) => match std::fs::read(self.folder.join(path)) {
                Ok(bytes) => reply(stream, "200 OK", media_type(path), &bytes),
                Err(_) => reply(stream, "404 Not Found", "text/plain", b"no such file"),
            },
            (_, _) => reply(stream, "400 Bad Request", "text/plain", b"bad request"),
        }
    }
}

/// Reads the header lines of a request, and returns the length of its body in bytes.
fn content_length(request: &mut impl BufRead) -> std::io::Result<usize> {
    let mut length = 0;
    for line in request.lines() {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().unwrap_or(0),
            Some(_) => {}
            None => break,
        }
    }
    Ok(length)
}

/// The path of a file relative to the served folder. `None` if the target of a request names no file in this folder.
fn path(target: &str) -> Option<String> {
    let path = target.split(['?', '#']).next()?.strip_prefix('/')?;
    let is_below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| if path.is_empty() { "index.html".to_owned() } else { path.to_owned() })
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        // browsers compile a module while it arrives only if it has this type
        Some("wasm") => "application/wasm",
        Some(_) | None => "application/octet-stream",
    }
}

fn reply(mut stream: &TcpStream, status: &str, media_type: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a request and returns the first line of the reply.
    fn ask(server: &Server, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).unwrap();
        reply
    }

    #[test]
    fn only_files_of_the_folder_are_served() {
        let server = Server::start(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), 0).unwrap();
        for (target, status) in [
            ("/main.rs", "200"),
            ("/main.rs?x=1", "200"),
            ("/", "404"),
            ("/../Cargo.toml", "400"),
            ("//etc/passwd", "400"),
            ("/browser/../../Cargo.toml", "400"),
            ("main.rs", "400"),
        ] {
            let reply = ask(&server, &format!("GET {target} HTTP/1.1\r\n\r\n"));
            assert!(reply.contains(status), "{target}: {reply}");
        }
    }

    #[test]
    fn a_report_arrives_and_ends_the_loading() {
        let server = Server::start(Path::new("."), 0).unwrap();
        assert!(server.report(Duration::ZERO).is_none());
        let report = "POST /report HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello";
        assert!(ask(&server, report).contains("200"));
        assert_eq!(server.report(Duration::from_secs(10)).as_deref(), Some("hello"));
        assert!(ask(&server, "GET /hold HTTP/1.1\r\n\r\n").contains("404"));
    }
}
