//! A webhook receiver that answers by a script and remembers what it got.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Got {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: serde_json::Value,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// One answer: status, headers, body.
pub type Answer = (u16, Vec<(&'static str, String)>, &'static str);

pub fn status(status: u16) -> Answer {
    (status, Vec::new(), "")
}

#[derive(Clone)]
pub struct HttpServer {
    pub port: u16,
    got: Arc<Mutex<Vec<Got>>>,
    script: Arc<Mutex<VecDeque<Answer>>>,
}

impl HttpServer {
    /// Answers by `script`, then 200.
    pub fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::on(std::net::TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    pub fn on(listener: std::net::TcpListener, script: impl IntoIterator<Item = Answer>) -> Self {
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(Mutex::new(script.into_iter().collect()));
        let server = HttpServer { port, got: Arc::default(), script };
        let (app, runtime) =
            (server.app(), tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
        listener.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            runtime.block_on(async {
                axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap();
            });
        });
        server
    }

    fn app(&self) -> Router {
        let server = self.clone();
        Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
            let body = serde_json::from_slice(&body).unwrap_or_default();
            server.got.lock().unwrap().push(Got { method, path: uri.to_string(), headers, body });
            let (status, more, body) = server.script.lock().unwrap().pop_front().unwrap_or((200, vec![], "ok"));
            let mut headers = HeaderMap::new();
            for (name, value) in more {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
            }
            (StatusCode::from_u16(status).unwrap(), headers, body)
        })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Status and GPU of the first alert of each body.
    pub fn told(&self) -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let first = |got: &Got| (text(&got.body["status"]), text(&got.body["alerts"][0]["labels"]["gpu"]));
        self.got().iter().map(first).collect()
    }
}
