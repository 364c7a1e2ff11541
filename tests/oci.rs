//! Modules go to a registry and come back, pinned and signed. The registry is the test's own, on loopback.
#![cfg(feature = "oci")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod world;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use watchfire_engine::module_store::{ModuleStore, hex};
use world::{stdout, watchfire};

const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Blobs and manifests, by their path.
type Kept = Arc<Mutex<HashMap<String, Bytes>>>;

/// The part of the OCI distribution protocol that a push and a pull need.
async fn registry(State(kept): State<Kept>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().replace("%3A", ":");
    match parts.method {
        Method::POST => (StatusCode::ACCEPTED, [(header::LOCATION, format!("{path}one?x=1"))]).into_response(),
        Method::PATCH => {
            kept.lock().unwrap().insert("upload".into(), body);
            (StatusCode::ACCEPTED, [(header::LOCATION, format!("{path}?x=1"))]).into_response()
        }
        Method::PUT => put(&kept, &path, &query, body),
        _ if path == "/v2/" => StatusCode::OK.into_response(),
        _ => get(&kept, &path),
    }
}

fn put(kept: &Kept, path: &str, query: &str, body: Bytes) -> Response {
    let mut kept = kept.lock().unwrap();
    let place = match query.split("digest=").nth(1) {
        Some(digest) => path.replace("/uploads/one", &format!("/{digest}")),
        None => path.to_owned(),
    };
    let body = if body.is_empty() { kept.remove("upload").unwrap_or(body) } else { body };
    if let Some((folder, _)) = place.split_once("/manifests/") {
        kept.insert(format!("{folder}/manifests/sha256:{}", hex(&body)), body.clone());
    }
    kept.insert(place.clone(), body);
    (StatusCode::CREATED, [(header::LOCATION, place)]).into_response()
}

fn get(kept: &Kept, path: &str) -> Response {
    let found = kept.lock().unwrap().get(path).cloned();
    let Some(body) = found else { return StatusCode::NOT_FOUND.into_response() };
    let kind = if path.contains("/manifests/") {
        "application/vnd.oci.image.manifest.v1+json"
    } else {
        "application/octet-stream"
    };
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

fn start() -> (SocketAddr, Kept) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let kept = Kept::default();
    let app = axum::Router::new().fallback(registry).with_state(kept.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime
            .block_on(async { axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap() });
    });
    (address, kept)
}

/// A key pair, its public half as a file.
fn key(file: &Path) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let prefix = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
    let mut der: Vec<u8> = (0..26).map(|at| u8::from_str_radix(&prefix[2 * at..2 * at + 2], 16).unwrap()).collect();
    der.extend_from_slice(pair.public_key().as_ref());
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    std::fs::write(file, format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")).unwrap();
    pair
}

/// Signs a manifest as cosign does: a payload as a blob, its signature in the manifest of the tag `sha256-….sig`.
fn sign(kept: &Kept, pair: &EcdsaKeyPair, digest: &str) {
    let payload = format!(r#"{{"critical":{{"image":{{"docker-manifest-digest":"{digest}"}}}},"optional":null}}"#);
    let signature = pair.sign(&SystemRandom::new(), payload.as_bytes()).unwrap();
    let signature = base64::engine::general_purpose::STANDARD.encode(signature);
    let blob = format!("sha256:{}", hex(payload.as_bytes()));
    let manifest = serde_json::json!({"schemaVersion": 2, "config": {}, "layers": [{
        "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json", "digest": blob, "size": payload.len(),
        "annotations": {"dev.cosignproject.cosign/signature": signature},
    }]});
    let mut kept = kept.lock().unwrap();
    kept.insert(format!("/v2/rules/x/blobs/{blob}"), payload.into());
    kept.insert(format!("/v2/rules/x/manifests/{}.sig", digest.replace(':', "-")), manifest.to_string().into());
}

#[test]
fn a_module_goes_to_a_registry_and_comes_back_only_if_it_is_the_one_that_was_signed() {
    let (address, kept) = start();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("x.wasm"), MODULE).unwrap();
    let tagged = format!("oci://{address}/rules/x:1.0.0");

    let pushed = watchfire(&["push", &at("x.wasm"), &tagged]);
    let pinned = stdout(&pushed).trim().to_owned();
    assert!(pinned.starts_with(&format!("oci://{address}/rules/x@sha256:")), "{pushed:?}");

    let pulled = watchfire(&["pull", &tagged, "--store", &at("store")]);
    assert_eq!(stdout(&pulled).trim(), pinned, "{pulled:?}");
    assert_eq!(ModuleStore::new(at("store")).read(&pinned).unwrap(), MODULE);

    let pair = key(&folder.path().join("cosign.pub"));
    key(&folder.path().join("stranger.pub"));
    let with = |file: &str| watchfire(&["pull", &pinned, "--store", &at("signed"), "--key", &at(file)]);
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said(&with("cosign.pub")).contains("is not signed"));
    sign(&kept, &pair, pinned.split_once('@').unwrap().1);
    assert!(said(&with("stranger.pub")).contains("another key"));
    let signed = with("cosign.pub");
    assert_eq!(stdout(&signed).trim(), pinned, "{}", said(&signed));

    let manifest = format!("/v2/rules/x/manifests/{}", pinned.split_once('@').unwrap().1);
    kept.lock().unwrap().insert(manifest, Bytes::from_static(b"{}"));
    let other = watchfire(&["pull", &pinned, "--store", &at("other")]);
    assert_eq!(other.status.code(), Some(3));
    assert!(!Path::new(&at("other")).exists(), "nothing is kept of what is not what was asked for");
}

#[test]
fn what_is_no_reference_is_refused() {
    for text in ["x.wasm", "oci://", "https://h/x"] {
        let output = watchfire(&["pull", text]);
        assert_eq!(output.status.code(), Some(1), "{text}");
    }
}
