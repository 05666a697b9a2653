//! One connection: reads requests, solves in a stream of its own, and sends answers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use lapidary::{DeviceMatrix, HostVec, Op, Stream};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::service::Service;

/// Maximum number of bytes of one number in a request, with the blank before it.
const NUMBER_BYTES: usize = 32;

/// A stream of the device, and the memory of a right-hand side.
pub struct Connection {
    service: Arc<Service>,
    stream: Stream,
    rhs: DeviceMatrix<f64>,
}

impl Connection {
    /// Answers the requests of a client until the client closes the connection.
    pub async fn run(service: Arc<Service>, socket: TcpStream, peer: SocketAddr) {
        // A client that disconnects is no failure of the server.
        if let Err(error) = Self::answer_all(service, socket).await {
            eprintln!("{peer}: {error}");
        }
    }

    async fn answer_all(service: Arc<Service>, socket: TcpStream) -> io::Result<()> {
        let mut connection = Connection::new(service).map_err(io::Error::other)?;
        let mut socket = BufReader::new(socket);
        while let Some(line) = connection.read_line(&mut socket).await? {
            let answer = connection.answer(&line).await.unwrap_or_else(|error| format!("error: {error}\n"));
            socket.write_all(answer.as_bytes()).await?;
            connection.service.count_answer();
        }
        Ok(())
    }

    fn new(service: Arc<Service>) -> lapidary::Result<Self> {
        let device = service.factors.device();
        let (stream, rhs) = (service.machine.stream(device)?, service.machine.zeros_on(device, service.order(), 1)?);
        Ok(Connection { service, stream, rhs })
    }

    /// Returns the next line, or `None` at the end of the connection. A line that the client has not finished is no request. The length
    /// of a line is limited, so that a client cannot exhaust the memory of the server.
    async fn read_line(&self, socket: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
        let limit = NUMBER_BYTES * (self.service.order() + 1);
        let mut line = Vec::new();
        socket.take(limit as u64).read_until(b'\n', &mut line).await?;
        match line.pop() {
            Some(b'\n') => Ok(Some(line)),
            _ if line.len() + 1 == limit => {
                let message = format!("a line has more than {limit} bytes");
                socket.write_all(format!("error: {message}\n").as_bytes()).await?;
                Err(io::Error::other(message))
            }
            _ => Ok(None),
        }
    }

    /// Returns the line that answers a request.
    async fn answer(&mut self, line: &[u8]) -> Result<String, String> {
        let b = right_hand_side(line, self.service.order())?;
        let x = self.solve(b).await.map_err(|error| error.to_string())?;
        // the shortest decimal fractions that a client reads back without an error
        let numbers: Vec<_> = x.iter().map(|x| format!("{x:e}")).collect();
        Ok(numbers.join(" ") + "\n")
    }

    /// Solves with the factors of the service. The task waits for the device; its thread runs other tasks meanwhile.
    async fn solve(&mut self, b: Vec<f64>) -> lapidary::Result<HostVec<f64>> {
        let solution = self.enqueue(b);
        // `done` also removes the error of a failed call, so that the stream can be used for the next request.
        self.stream.done().await?;
        solution?.await
    }

    fn enqueue(&mut self, b: Vec<f64>) -> lapidary::Result<lapidary::Reading<f64>> {
        let Service { factors, pivots, .. } = &*self.service;
        self.stream.write(b, &mut self.rhs)?;
        self.stream.getrs(Op::NoTrans, factors.view(), pivots, self.rhs.view_mut())?;
        self.stream.read(&self.rhs)
    }
}

/// Returns the right-hand side of a request of `n` unknowns.
fn right_hand_side(line: &[u8], n: usize) -> Result<Vec<f64>, String> {
    let text = str::from_utf8(line).map_err(|error| error.to_string())?;
    let mut words = text.split_ascii_whitespace();
    let count = words.next().ok_or("the request is empty")?;
    if count.parse() != Ok(n) {
        return Err(format!("the request has {count} unknowns, the matrix is of order {n}"));
    }
    let parse = |word: &str| word.parse().map_err(|_| format!("{word:?} is no number"));
    let b = words.map(parse).collect::<Result<Vec<f64>, _>>()?;
    if b.len() == n { Ok(b) } else { Err(format!("the right-hand side has {} elements, not {n}", b.len())) }
}
