//! Modules in registries: fetched, checked and kept; or put there.
//!
//! The artifact is the one that other WebAssembly tools use: a configuration of
//! `application/vnd.wasm.config.v0+json` and one layer of `application/wasm`.

mod signature;

use std::future::Future;

use oci_client::client::{ClientConfig, ClientProtocol, Config, ImageLayer};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use watchfire_engine::module_store::{MODULE_MEDIA_TYPE, SCHEME, hex, module_layer};

pub use signature::PublicKey;

const CONFIG_MEDIA_TYPE: &str = "application/vnd.wasm.config.v0+json";
const MANIFEST_MEDIA_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The largest module that is fetched, bytes: as the largest class of modules.
const MODULE_BYTES_MAX: usize = 32 << 20;
/// The largest signature that is fetched, bytes.
const SIGNATURE_BYTES_MAX: usize = 64 << 10;

/// A module as it came from a registry.
#[derive(Debug)]
pub struct Fetched {
    /// The bytes of its manifest, which the digest names.
    pub manifest: Vec<u8>,
    /// The module.
    pub module: Vec<u8>,
    /// The name that a template can use: pinned.
    pub reference: String,
}

/// A registry's client.
pub struct Registry {
    client: Client,
    auth: RegistryAuth,
    runtime: tokio::runtime::Runtime,
}

impl Registry {
    /// A client. User and password come from `WATCHFIRE_OCI_USERNAME` and `WATCHFIRE_OCI_PASSWORD`; loopback
    /// registries are spoken to without TLS, all others with it.
    ///
    /// # Errors
    /// Where this process cannot have one.
    pub fn new(reference: &Reference) -> Result<Self, String> {
        // Another part of the process may have installed it already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let host = reference.resolve_registry();
        let is_local = host.starts_with("127.0.0.1:") || host.starts_with("localhost:") || host.starts_with("[::1]:");
        let protocol = if is_local { ClientProtocol::Http } else { ClientProtocol::Https };
        let user = std::env::var("WATCHFIRE_OCI_USERNAME").ok();
        let password = std::env::var("WATCHFIRE_OCI_PASSWORD").unwrap_or_default();
        let auth = user.map_or(RegistryAuth::Anonymous, |user| RegistryAuth::Basic(user, password));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let client = Client::new(ClientConfig { protocol, ..ClientConfig::default() });
        Ok(Registry { client, auth, runtime: runtime.map_err(|error| error.to_string())? })
    }

    fn wait<T, E: std::fmt::Display>(&self, what: &str, work: impl Future<Output = Result<T, E>>) -> Result<T, String> {
        self.runtime.block_on(work).map_err(|error| format!("{what}: {error}"))
    }

    /// Fetches a module. With keys, it must be signed by one of them.
    ///
    /// # Errors
    /// What went wrong, or that nobody known has signed it.
    pub fn fetch(&self, reference: &Reference, keys: &[PublicKey]) -> Result<Fetched, String> {
        let whole = reference.whole();
        let pull = self.client.pull_manifest_raw(reference, &self.auth, &[MANIFEST_MEDIA_TYPE]);
        let (manifest, _) = self.wait(&whole, pull)?;
        let digest = format!("sha256:{}", hex(&manifest));
        if let Some(wanted) = reference.digest().filter(|wanted| *wanted != digest) {
            return Err(format!("{whole}: the registry answered the manifest {digest} in place of {wanted}"));
        }
        if !keys.is_empty() {
            self.verify(reference, &digest, keys)?;
        }
        let module = self.blob(reference, &module_layer(&manifest)?, MODULE_BYTES_MAX)?;
        let name = reference.clone_with_digest(digest).whole();
        Ok(Fetched { manifest: manifest.to_vec(), module, reference: format!("{SCHEME}{name}") })
    }

    /// A blob, whose digest the client checks.
    fn blob(&self, reference: &Reference, digest: &str, most: usize) -> Result<Vec<u8>, String> {
        let layer = oci_client::manifest::OciDescriptor { digest: digest.to_owned(), ..Default::default() };
        let mut sink = Bounded { bytes: Vec::new(), most };
        self.wait(&format!("{}: {digest}", reference.whole()), self.client.pull_blob(reference, &layer, &mut sink))?;
        Ok(sink.bytes)
    }

    /// Looks for a signature where cosign puts it: at the tag `sha256-DIGEST.sig`.
    fn verify(&self, reference: &Reference, digest: &str, keys: &[PublicKey]) -> Result<(), String> {
        let tag = format!("{}.sig", digest.replace(':', "-"));
        let place = Reference::with_tag(reference.registry().into(), reference.repository().into(), tag);
        let pull = self.client.pull_manifest_raw(&place, &self.auth, &[MANIFEST_MEDIA_TYPE]);
        let (manifest, _) = self.wait(&format!("{digest} is not signed"), pull)?;
        let signatures = signature::in_manifest(&manifest)?;
        let mut why = "there is no signature".to_owned();
        for (payload, signature) in signatures {
            let payload = self.blob(&place, &payload, SIGNATURE_BYTES_MAX)?;
            match signature::check(&payload, &signature, digest, keys) {
                Ok(()) => return Ok(()),
                Err(reason) => why = reason,
            }
        }
        Err(format!("{digest} is not signed by a known key: {why}"))
    }

    /// Puts a module into a registry; its pinned name.
    ///
    /// # Errors
    /// What went wrong.
    pub fn push(&self, reference: &Reference, module: Vec<u8>) -> Result<String, String> {
        let layer = ImageLayer::new(module, MODULE_MEDIA_TYPE.to_owned(), None);
        let config = Config::new(b"{}".to_vec(), CONFIG_MEDIA_TYPE.to_owned(), None);
        let whole = reference.whole();
        self.wait(&whole, self.client.push(reference, &[layer], config, &self.auth, None))?;
        let fetched = self.client.pull_manifest_raw(reference, &self.auth, &[MANIFEST_MEDIA_TYPE]);
        let (manifest, _) = self.wait(&whole, fetched)?;
        let name = reference.clone_with_digest(format!("sha256:{}", hex(&manifest))).whole();
        Ok(format!("{SCHEME}{name}"))
    }
}

/// Reads `oci://HOST/NAME:TAG` or `oci://HOST/NAME@sha256:…`.
///
/// # Errors
/// Where it is neither.
pub fn reference(text: &str) -> Result<Reference, String> {
    let plain = text.strip_prefix(SCHEME);
    let plain =
        plain.ok_or_else(|| format!("{text:?} is no reference; expected {SCHEME}HOST/NAME:TAG or …@sha256:…"))?;
    plain.parse().map_err(|error| format!("{text:?} is no reference: {error}"))
}

/// Takes no more than so many bytes, whatever a registry sends.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl tokio::io::AsyncWrite for Bounded {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        if self.bytes.len() + bytes.len() > self.most {
            let why = format!("it has more than {} bytes", self.most);
            return std::task::Poll::Ready(Err(std::io::Error::other(why)));
        }
        self.bytes.extend_from_slice(bytes);
        std::task::Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}
