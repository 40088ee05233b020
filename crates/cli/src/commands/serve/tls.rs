//! TLS for `serve`: rustls with the certificate and key of two PEM files.
//!
//! **Invariant:** only TLS 1.2 and 1.3, and only with a key that belongs to the certificate.

use anyhow::Context as _;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Reads a certificate chain and its key.
pub(super) fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let attempt = || format!("could not read a certificate from {}", certificate.display());
    let chain = CertificateDer::pem_file_iter(certificate).with_context(attempt)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().with_context(attempt)?;
    let read = PrivateKeyDer::from_pem_file(key);
    let read = read.with_context(|| format!("could not read a key from {}", key.display()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, read))
        .context("certificate and key do not match")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
