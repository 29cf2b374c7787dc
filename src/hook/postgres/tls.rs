//! TLS as libpq does it: encryption alone, the certificate's chain, or chain and name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// Certificates to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those of the operating system.
    System,
    /// Those in a PEM file.
    File(PathBuf),
}

/// How much of the server's certificate is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// Nothing: who listens in can't read, who stands in between can.
    None,
    Chain(Roots),
    ChainAndName(Roots),
}

/// The client's side of TLS.
///
/// # Errors
/// A certificate or key that can't be read, in libpq's words where it has some.
pub(super) fn client_config(
    verification: &Verification,
    client_certificate: Option<&(PathBuf, PathBuf)>,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new(verification, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match client_certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate).map_err(|reason| {
                format!(
                    "could not read certificate file \"{}\": {reason}",
                    certificate.display()
                )
            })?;
            let key_file = key.display();
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                format!("could not load private key file \"{key_file}\": {error}")
            })?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                format!("could not load private key file \"{key_file}\": {error}")
            })?
        }
    };
    // Only asked for by servers that take TLS without a request for it first (`sslnegotiation=direct`).
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(config)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    Ok(certificates)
}

#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    chain: Option<Chain>,
}

#[derive(Debug)]
struct Chain {
    webpki: Arc<WebPkiServerVerifier>,
    /// The roots themselves: a server may show one of them as its own certificate.
    roots: Vec<CertificateDer<'static>>,
    name: bool,
}

impl Verifier {
    fn new(verification: &Verification, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let (roots, name) = match verification {
            Verification::None => {
                return Ok(Self {
                    provider: Arc::clone(provider),
                    chain: None,
                });
            }
            Verification::Chain(roots) => (roots, false),
            Verification::ChainAndName(roots) => (roots, true),
        };
        let roots = match roots {
            Roots::System => rustls_native_certs::load_native_certs().certs,
            Roots::File(file) if !file.exists() => {
                return Err(format!(
                    "root certificate file \"{}\" does not exist\nEither provide the file, use the system's trusted \
                     roots with sslrootcert=system, or change sslmode to disable server certificate verification.",
                    file.display()
                ));
            }
            Roots::File(file) => certificates(file).map_err(|reason| {
                format!(
                    "could not read root certificate file \"{}\": {reason}",
                    file.display()
                )
            })?,
        };
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        let webpki =
            WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
                .build()
                .map_err(|error| format!("the root certificates can't be used: {error}"))?;
        Ok(Self {
            provider: Arc::clone(provider),
            chain: Some(Chain {
                webpki,
                roots,
                name,
            }),
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = chain.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !chain.name => Ok(ServerCertVerified::assertion()),
            // A self-signed certificate that is its own root: OpenSSL takes it, so people have it. The store can't.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if chain.roots.iter().any(|root| root == end_entity) =>
            {
                if chain.name {
                    let parsed = ParsedCertificate::try_from(end_entity)?;
                    rustls::client::verify_server_name(&parsed, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
