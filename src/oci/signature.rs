//! Signatures as cosign makes them with a key pair: ECDSA on P-256 over a small JSON text ("simple signing") that
//! names the digest of the manifest. <https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
const PAYLOAD_MEDIA_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// What stands before the 65 bytes of a P-256 point in a SubjectPublicKeyInfo (RFC 5480).
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A key that signs modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// Reads a `cosign.pub`.
    ///
    /// # Errors
    /// Where it is no P-256 key in PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let key =
            SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|error| format!("it is no public key: {error}"))?;
        let point = key.strip_prefix(&P256_PREFIX).filter(|point| point.len() == 65);
        point
            .map(|point| PublicKey(point.to_vec()))
            .ok_or_else(|| "it is no key on the curve P-256, which `cosign generate-key-pair` makes".to_owned())
    }
}

/// The signatures of a manifest: the digest of each payload, and the signature over it.
///
/// # Errors
/// Where it is no manifest.
pub fn in_manifest(manifest: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let manifest: serde_json::Value =
        serde_json::from_slice(manifest).map_err(|error| format!("the signature's manifest is no JSON: {error}"))?;
    let layers = manifest["layers"].as_array().cloned().unwrap_or_default();
    let one = |layer: &serde_json::Value| {
        let text = layer["annotations"][SIGNATURE_ANNOTATION].as_str()?;
        Some((layer["digest"].as_str()?.to_owned(), STANDARD.decode(text).ok()?))
    };
    Ok(layers.iter().filter(|layer| layer["mediaType"] == PAYLOAD_MEDIA_TYPE).filter_map(one).collect())
}

/// Whether a payload is signed by one of the keys and speaks of the digest.
///
/// # Errors
/// Why not.
pub fn check(payload: &[u8], signature: &[u8], digest: &str, keys: &[PublicKey]) -> Result<(), String> {
    let fits =
        |key: &PublicKey| UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &key.0).verify(payload, signature).is_ok();
    if !keys.iter().any(fits) {
        return Err("its signature is by another key".to_owned());
    }
    let said: serde_json::Value =
        serde_json::from_slice(payload).map_err(|error| format!("what is signed is no JSON: {error}"))?;
    let found = said["critical"]["image"]["docker-manifest-digest"].as_str().unwrap_or_default();
    if found == digest { Ok(()) } else { Err(format!("what is signed is {found:?}")) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

    use super::*;

    fn key() -> (EcdsaKeyPair, PublicKey) {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
        let der = [&P256_PREFIX[..], pair.public_key().as_ref()].concat();
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der));
        let public = PublicKey::from_pem(pem.as_bytes()).unwrap();
        (pair, public)
    }

    #[test]
    fn only_a_known_key_and_the_very_digest_count() {
        let (pair, public) = key();
        let (_, stranger) = key();
        let payload = br#"{"critical":{"image":{"docker-manifest-digest":"sha256:aa"}}}"#;
        let signature = pair.sign(&SystemRandom::new(), payload).unwrap();
        let verdict = |payload: &[u8], digest, key: &PublicKey| {
            check(payload, signature.as_ref(), digest, std::slice::from_ref(key))
        };
        assert_eq!(verdict(payload, "sha256:aa", &public), Ok(()));
        assert!(verdict(payload, "sha256:bb", &public).unwrap_err().contains("sha256:aa"));
        assert!(verdict(payload, "sha256:aa", &stranger).unwrap_err().contains("another key"));
        assert!(verdict(b"{}", "sha256:aa", &public).unwrap_err().contains("another key"));
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        assert!(PublicKey::from_pem(b"hello").is_err());
        let other = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
        assert!(PublicKey::from_pem(other.as_bytes()).unwrap_err().contains("P-256"));
    }
}
