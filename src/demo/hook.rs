//! A webhook receiver for the demo: takes any POST on loopback and keeps its body.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::routing::post;

type Bodies = Arc<Mutex<Vec<String>>>;

/// The receiver; it serves until the process ends.
pub struct HookServer {
    /// Where it listens.
    pub address: SocketAddr,
    received: Bodies,
}

impl HookServer {
    /// Starts serving on a free port of the loopback.
    ///
    /// # Errors
    /// Where no port or thread can be had.
    pub fn start() -> io::Result<HookServer> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let received = Bodies::default();
        let app = Router::new().route("/hook", post(keep)).with_state(received.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        std::thread::Builder::new().name("demo-hook".into()).spawn(move || {
            runtime.block_on(async { axum::serve(tokio::net::TcpListener::from_std(listener)?, app).await })
        })?;
        Ok(HookServer { address, received })
    }

    /// The bodies that have arrived so far.
    pub fn received(&self) -> Vec<String> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn keep(State(bodies): State<Bodies>, body: String) {
    bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
}
