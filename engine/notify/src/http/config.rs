//! `http_config`: how a receiver wants to be spoken to.

use std::path::PathBuf;

use reqwest::header::HeaderName;

use crate::secret::SecretSource;

/// Settings of an HTTP client, as in Alertmanager's `http_config`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpConfig {
    /// Who we are.
    pub authorization: Option<Authorization>,
    /// More headers.
    pub headers: Vec<(HeaderName, SecretSource)>,
    /// PEM file with the CAs to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
}

/// The header `Authorization`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// `SCHEME CREDENTIALS`, such as `Bearer …`.
    Scheme {
        /// Such as `Bearer`.
        scheme: String,
        /// What follows it.
        credentials: SecretSource,
    },
    /// HTTP basic authentication (RFC 7617).
    Basic {
        /// Without `:`.
        username: String,
        /// The password.
        password: SecretSource,
    },
}
