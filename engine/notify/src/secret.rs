//! Values that must never be seen in logs, errors or the API.

use std::fmt;
use std::path::PathBuf;

/// The longest secret read from a file, in bytes.
pub const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// A value that prints as `<secret>`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a value.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

/// Where a secret comes from. A file is read at each use, so that it can be changed under a running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// Written in the configuration, or taken from the environment when the configuration was read.
    Value(Secret),
    /// A file; white space around the secret is cut.
    File(PathBuf),
}

impl SecretSource {
    /// A value given in code.
    pub fn value(value: impl Into<String>) -> Self {
        SecretSource::Value(Secret::new(value))
    }

    /// The secret as it is now.
    ///
    /// # Errors
    /// The file cannot be read, is empty, not UTF-8, or longer than [`SECRET_BYTES_MAX`].
    pub fn load(&self) -> Result<Secret, SecretError> {
        match self {
            SecretSource::Value(secret) => Ok(secret.clone()),
            SecretSource::File(path) => read_file(path).map_err(|why| SecretError { path: path.clone(), why }),
        }
    }
}

/// A secret's file could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot take the secret from {}: {why}", path.display())]
pub struct SecretError {
    path: PathBuf,
    why: String,
}

fn read_file(path: &std::path::Path) -> Result<Secret, String> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > SECRET_BYTES_MAX {
        return Err(format!("the file is longer than {SECRET_BYTES_MAX} bytes"));
    }
    let text = text.trim();
    if text.is_empty() { Err("the file is empty".into()) } else { Ok(Secret::new(text)) }
}

/// Replaces `${NAME}` by what `lookup` says of NAME. A `$` before anything else stays as it is.
///
/// # Errors
/// The name that `lookup` does not know, or a `${` without end.
pub fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('}') else {
            return Err("`${` without `}`; write `${NAME}`".into());
        };
        let name = &rest[at + 2..at + end];
        out.push_str(&lookup(name).ok_or_else(|| format!("environment variable {name} is not set"))?);
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// A URL as it may be shown: scheme, host and port. User, path, query and fragment can carry tokens.
pub fn redact_url(url: &str) -> String {
    let Ok(url) = reqwest::Url::parse(url) else { return "<not a URL>".into() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let source = SecretSource::value("hunter2");
        let secret = source.load().unwrap();
        let shown = format!("{secret} {secret:?} {secret:#?} {source:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_file_is_read_at_each_use_and_trimmed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let source = SecretSource::File(path.clone());
        let missing = source.load().unwrap_err().to_string();
        assert!(missing.contains("token: No such file"), "{missing}");
        std::fs::write(&path, "one\n").unwrap();
        assert_eq!(source.load().unwrap().expose(), "one");
        std::fs::write(&path, " two ").unwrap();
        assert_eq!(source.load().unwrap().expose(), "two");
        std::fs::write(&path, "\n").unwrap();
        assert!(source.load().unwrap_err().to_string().ends_with("the file is empty"));
        std::fs::write(&path, "x".repeat(SECRET_BYTES_MAX as usize + 1)).unwrap();
        assert!(source.load().unwrap_err().to_string().ends_with("longer than 65536 bytes"));
    }

    #[test]
    fn urls_are_shown_as_scheme_and_host() {
        let cases = [
            ("https://user:pw@hooks.example:8443/services/T0/B0/XXXX?token=1#f", "https://hooks.example:8443"),
            ("http://127.0.0.1:8080/hook", "http://127.0.0.1:8080"),
            ("http://[::1]:80/", "http://[::1]"),
            ("hook", "<not a URL>"),
        ];
        for (url, shown) in cases {
            assert_eq!(redact_url(url), shown);
        }
    }

    #[test]
    fn the_environment_is_put_in() {
        let lookup = |name: &str| (name == "TOKEN").then(|| "t0p".to_owned());
        assert_eq!(expand("https://x/${TOKEN}/y$5", lookup).unwrap(), "https://x/t0p/y$5");
        assert_eq!(expand("plain", lookup).unwrap(), "plain");
        assert_eq!(expand("${NOPE}", lookup).unwrap_err(), "environment variable NOPE is not set");
        assert!(expand("${TOKEN", lookup).unwrap_err().starts_with("`${` without `}`"));
    }
}
