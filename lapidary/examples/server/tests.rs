//! Tests with clients: correct solutions, wrong requests, clients that disconnect, and connections that do not wait for each other.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use lapidary::{Gemm, Machine};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::service::Service;
use crate::system::{backward_error, machines, random};

const N: usize = 120;

fn matrix() -> Vec<f64> {
    random(1, N * N)
}

/// Starts a server on a free port.
async fn start(machine: &Machine, limit: Option<u64>) -> (SocketAddr, Arc<Service>, JoinHandle<io::Result<u64>>) {
    let service = Service::new(machine, N, &matrix()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, Arc::clone(&service), tokio::spawn(service.serve(listener, limit)))
}

struct Client(BufReader<TcpStream>);

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        Client(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    async fn send(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).await.unwrap();
    }

    /// Returns the next answer, or an empty text at the end of the connection.
    async fn receive(&mut self) -> String {
        let mut answer = String::new();
        self.0.read_line(&mut answer).await.unwrap();
        answer
    }

    /// Sends a right-hand side and checks the solution.
    async fn solve(&mut self, seed: u64) {
        let b = random(seed, N);
        self.send(&request(&b)).await;
        let answer = self.receive().await;
        let x: Vec<f64> = answer.split_whitespace().map(|word| word.parse().expect(&answer)).collect();
        let error = backward_error(&matrix(), &x, &b);
        assert!(error < 30.0, "{error}");
    }
}

fn request(b: &[f64]) -> String {
    let numbers: String = b.iter().map(|b| format!(" {b:e}")).collect();
    format!("{}{numbers}\n", b.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_get_their_solutions_at_the_same_time_and_the_server_ends() {
    let (clients, requests) = (8, 5);
    for machine in machines() {
        let (address, _, server) = start(&machine, Some(clients * requests)).await;
        let mut all = JoinSet::new();
        for client in 0..clients {
            all.spawn(async move {
                let mut connection = Client::connect(address).await;
                for seed in 0..requests {
                    connection.solve(100 * client + seed).await;
                }
            });
        }
        all.join_all().await;
        assert_eq!(server.await.unwrap().unwrap(), clients * requests);
    }
}

#[tokio::test]
async fn wrong_requests_get_an_error_and_the_connection_stays_open() {
    let (address, ..) = start(&machines()[0], None).await;
    let mut client = Client::connect(address).await;
    let numbers = |count: usize| request(&random(7, count));
    for (wrong, message) in [
        ("\n".to_owned(), "is empty"),
        ("many 1 2\n".to_owned(), "has many unknowns"),
        (numbers(N - 1), "has 119 unknowns, the matrix is of order 120"),
        (format!("{N} 1 2 3\n"), "has 3 elements, not 120"),
        (numbers(N).replace('\n', " 1\n"), "has 121 elements, not 120"),
        (numbers(N).replace('\n', "x\n"), "is no number"),
    ] {
        client.send(&wrong).await;
        let answer = client.receive().await;
        assert!(answer.starts_with("error: ") && answer.contains(message), "{wrong:?}: {answer}");
        client.solve(7).await;
    }
    // a line without an end
    client.send(&"1 ".repeat(16 * (N + 1))).await;
    assert!(client.receive().await.starts_with("error: a line has more than"));
    assert_eq!(client.receive().await, "");
}

#[tokio::test]
async fn clients_that_disconnect_do_not_end_the_server() {
    let whole = request(&random(3, N));
    let parts = [0, 1, whole.len() / 2, whole.len() - 1].map(|length| &whole[..length]);
    for machine in machines() {
        let (address, _, server) = start(&machine, Some(parts.len() as u64)).await;
        for part in parts {
            Client::connect(address).await.send(part).await;
            Client::connect(address).await.solve(4).await;
        }
        // a part of a request has no answer
        assert_eq!(server.await.unwrap().unwrap(), parts.len() as u64);

        let (address, ..) = start(&machine, None).await;
        for seed in 0..3 {
            // this client disconnects while the server solves
            Client::connect(address).await.send(&whole).await;
            Client::connect(address).await.solve(seed).await;
        }
    }
}

/// Enqueues products that occupy the device of the service for about a second.
fn occupy(machine: &Machine, service: &Service) {
    let (n, device) = (200, service.factors.device());
    let stream = machine.stream(device).unwrap();
    let [a, mut c] = [(); 2].map(|()| machine.zeros_on::<f64>(device, n, n).unwrap());
    let mut multiply = |times: u128| (0..times).for_each(|_| stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).unwrap());
    multiply(1); // may compile kernels
    stream.wait().unwrap();
    let start = Instant::now();
    multiply(10);
    stream.wait().unwrap();
    multiply(10_000_000 / start.elapsed().as_micros().clamp(10_000, 1_000_000));
    stream.flush();
}

/// Whether the driver computes while a program submits work, as Vulkan drivers for the CPU do.
fn computes_at_submission(machine: &Machine) -> bool {
    machine.devices().any(|facts| facts.name.starts_with("wgpu") && facts.is_cpu())
}

/// The executor of this test has one thread: a connection that waited for the device would stop all connections.
#[tokio::test(flavor = "current_thread")]
async fn a_connection_that_waits_for_the_device_holds_up_no_other_connection() {
    for machine in machines().into_iter().filter(|machine| !computes_at_submission(machine)) {
        let (address, service, _) = start(&machine, None).await;
        let (mut slow, mut fast) = (Client::connect(address).await, Client::connect(address).await);
        slow.solve(5).await; // the first solve may compile kernels
        occupy(&machine, &service);
        slow.send(&request(&random(6, N))).await;
        for _ in 0..3 {
            fast.send("0\n").await;
            tokio::select! {
                biased;
                _ = slow.receive() => panic!("{}: the solve was answered before the wrong request", machine.devices().next().unwrap().name),
                answer = fast.receive() => assert!(answer.starts_with("error: "), "{answer}"),
            }
        }
        assert!(!slow.receive().await.starts_with("error: "));
    }
}
