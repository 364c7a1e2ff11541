//! Trust: which certificate authorities are believed, and what a TLS error means in plain words.
//!
//! The ring provider is given to each client by hand, so that no process-wide default is touched.

use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::sync::Arc;

use lettre::transport::smtp::client::{Certificate, CertificateStore, TlsParameters};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig, RootCertStore};

use crate::receiver::BuildError;

/// The certificate authorities that are trusted where no `ca_file` is given.
#[derive(Clone, Debug)]
pub struct Roots(Arc<Vec<CertificateDer<'static>>>);

impl Roots {
    /// The system's, read once. Where there are none, as in an empty container, Mozilla's list is used.
    pub fn system() -> Self {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "a system certificate could not be read");
        }
        // One certificate that rustls cannot parse must not spoil the rest.
        let mut store = RootCertStore::empty();
        let usable = found.certs.into_iter().filter(|one| store.add(one.clone()).is_ok());
        Roots(Arc::new(usable.collect()))
    }
}

/// TLS for HTTP clients. With `ca_file` only its authorities are trusted.
///
/// # Errors
/// The file cannot be used.
pub fn client_config(ca_file: Option<&Path>, roots: &Roots) -> Result<ClientConfig, BuildError> {
    let trusted = trusted(ca_file, roots)?;
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(trusted.iter().cloned());
    if trusted.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| BuildError::new(format!("cannot set up TLS: {error}")))?;
    Ok(config.with_root_certificates(store).with_no_client_auth())
}

/// TLS for SMTP. With `ca_file` only its authorities are trusted.
///
/// # Errors
/// The file cannot be used.
pub fn smtp_parameters(host: &str, ca_file: Option<&Path>, roots: &Roots) -> Result<TlsParameters, BuildError> {
    let failed = |error| BuildError::new(format!("cannot set up TLS for {host}: {error}"));
    let trusted = trusted(ca_file, roots)?;
    let store = if trusted.is_empty() { CertificateStore::WebpkiRoots } else { CertificateStore::None };
    let mut builder = TlsParameters::builder(host.to_owned()).certificate_store(store);
    for certificate in trusted.iter() {
        builder = builder.add_root_certificate(Certificate::from_der(certificate.to_vec()).map_err(failed)?);
    }
    builder.build().map_err(failed)
}

/// The authorities to trust: those of the file, or the system's. None at all means the bundled ones.
fn trusted(ca_file: Option<&Path>, roots: &Roots) -> Result<Arc<Vec<CertificateDer<'static>>>, BuildError> {
    let Some(path) = ca_file else { return Ok(roots.0.clone()) };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| bad_ca(path, &error))?;
    let mut store = RootCertStore::empty();
    for certificate in &found {
        store.add(certificate.clone()).map_err(|error| bad_ca(path, &error))?;
    }
    if found.is_empty() { Err(bad_ca(path, &"there is no certificate in it")) } else { Ok(Arc::new(found)) }
}

fn bad_ca(path: &Path, why: &dyn std::fmt::Display) -> BuildError {
    BuildError::new(format!("cannot use ca_file {}: {why}", path.display()))
}

/// The TLS error within an error, if that is what it comes from.
pub(crate) fn find<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        // An I/O error does not count what it wraps as its source.
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    None
}

/// What a TLS error means and what to do. `plain_hint` says what to set if the other side speaks plain text.
pub(crate) fn explain(error: &rustls::Error, plain_hint: &str) -> String {
    use CertificateError as Bad;
    let text = match error {
        rustls::Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the server's certificate has expired; renew it"
        }
        rustls::Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "the server's certificate is not valid yet; check this host's clock"
        }
        rustls::Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "the server's certificate is for another host name; use the name it was issued for"
        }
        rustls::Error::InvalidCertificate(Bad::UnknownIssuer) => {
            "the server's certificate is not signed by a trusted authority; name its CA in tls_config: {ca_file}"
        }
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
            return format!("the server does not speak TLS on this port (InvalidContentType); {plain_hint}");
        }
        _ => return format!("TLS failed: {error}"),
    };
    text.to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_tls_error_is_found_within_io_errors() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::Expired);
        let nested = io::Error::other(io::Error::other(tls.clone()));
        assert_eq!(find(&nested), Some(&tls));
        assert_eq!(find(&io::Error::other("refused")), None);
    }

    #[test]
    fn a_ca_file_without_a_certificate_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let roots = Roots(Arc::default());
        let error = client_config(Some(&path), &roots).unwrap_err().to_string();
        assert!(error.contains("cannot use ca_file") && error.contains("ca.pem"), "{error}");
        std::fs::write(&path, "no PEM").unwrap();
        let error = smtp_parameters("mx.example", Some(&path), &roots).err().unwrap().to_string();
        assert!(error.ends_with("there is no certificate in it"), "{error}");
    }

    #[test]
    fn without_system_roots_the_bundled_ones_are_used() {
        let empty = Roots(Arc::default());
        assert!(client_config(None, &empty).is_ok());
        assert!(smtp_parameters("mx.example", None, &empty).is_ok());
    }
}
