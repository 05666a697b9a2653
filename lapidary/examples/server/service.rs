//! The factors on a device, and the loop that accepts connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lapidary::{DeviceMatrix, DevicePivots, Error, Machine, MatRef, Result};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::connection::Connection;

/// Maximum number of connections that are open at the same time. Further connections wait until the server accepts them.
const MAX_CONNECTIONS: usize = 200;

/// A matrix that was factored on a device, for connections that solve with its factors.
pub struct Service {
    pub machine: Machine,
    pub factors: DeviceMatrix<f64>,
    pub pivots: DevicePivots,
    answers: AtomicU64,
    answered: Notify,
}

impl Service {
    /// Copies a column-major matrix of order `n` to the fastest device of the machine, and factors it there.
    pub async fn new(machine: &Machine, n: usize, a: &[f64]) -> Result<Arc<Self>> {
        let mut factors = machine.upload(MatRef::col_major(a, n, n)?)?;
        let stream = machine.stream(factors.device())?;
        let pivots = stream.getrf(factors.view_mut())?;
        let (_, info) = stream.read_pivots(&pivots)?.await?;
        match info.get() {
            0 => {
                let (answers, answered) = (AtomicU64::new(0), Notify::new());
                Ok(Arc::new(Service { machine: machine.clone(), factors, pivots, answers, answered }))
            }
            pivot => Err(Error::singular("getrf", pivot)),
        }
    }

    /// Number of unknowns.
    pub fn order(&self) -> usize {
        self.factors.shape().0
    }

    /// Counts an answer that was sent to a client.
    pub fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.answered.notify_one();
    }

    /// Accepts connections and answers their requests until `limit` answers were sent. Returns the number of answers. If the future is
    /// dropped, the connections end: the device may still use their matrices, which it frees afterwards.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, limit: Option<u64>) -> io::Result<u64> {
        let mut connections = JoinSet::new();
        loop {
            let answers = self.answers.load(Ordering::Relaxed);
            if limit.is_some_and(|limit| answers >= limit) {
                return Ok(answers);
            }
            tokio::select! {
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((socket, peer)) => drop(connections.spawn(Connection::run(Arc::clone(&self), socket, peer))),
                    // such as a client that has disconnected before
                    Err(error) => eprintln!("accept: {error}"),
                },
                () = self.answered.notified() => {}
                Some(ended) = connections.join_next() => ended?,
            }
        }
    }
}
