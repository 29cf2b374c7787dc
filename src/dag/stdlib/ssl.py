"""TLS without sockets: what others import, what describes a connection, and a refusal to make one."""

import enum as _enum
from _socket import NO_SOCKETS as _NO_SOCKETS

OPENSSL_VERSION = "none"
OPENSSL_VERSION_INFO = (0, 0, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0
HAS_SNI = HAS_ECDH = HAS_ALPN = HAS_TLSv1_2 = HAS_TLSv1_3 = True
HAS_NPN = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = HAS_NEVER_CHECK_COMMON_NAME = False


class SSLError(OSError):
    library = reason = None


class SSLZeroReturnError(SSLError):
    pass


class SSLWantReadError(SSLError):
    pass


class SSLWantWriteError(SSLError):
    pass


class SSLSyscallError(SSLError):
    pass


class SSLEOFError(SSLError):
    pass


class SSLCertVerificationError(SSLError, ValueError):
    pass


CertificateError = SSLCertVerificationError
socket_error = OSError


class VerifyMode(_enum.IntEnum):
    CERT_NONE = 0
    CERT_OPTIONAL = 1
    CERT_REQUIRED = 2


class TLSVersion(_enum.IntEnum):
    MINIMUM_SUPPORTED = -2
    SSLv3 = 768
    TLSv1 = 769
    TLSv1_1 = 770
    TLSv1_2 = 771
    TLSv1_3 = 772
    MAXIMUM_SUPPORTED = -1


class Purpose(_enum.Enum):
    SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
    CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"


class _SSLMethod(_enum.IntEnum):
    PROTOCOL_TLS = 2
    PROTOCOL_TLSv1 = 3
    PROTOCOL_TLSv1_1 = 4
    PROTOCOL_TLSv1_2 = 5
    PROTOCOL_TLS_CLIENT = 16
    PROTOCOL_TLS_SERVER = 17


class Options(_enum.IntFlag):
    OP_ALL = 0x80000050
    OP_NO_SSLv2 = 0
    OP_NO_SSLv3 = 0x02000000
    OP_NO_TLSv1 = 0x04000000
    OP_NO_TLSv1_1 = 0x10000000
    OP_NO_TLSv1_2 = 0x08000000
    OP_NO_TLSv1_3 = 0x20000000
    OP_NO_COMPRESSION = 0x00020000
    OP_NO_TICKET = 0x00004000
    OP_LEGACY_SERVER_CONNECT = 0x00000004


class VerifyFlags(_enum.IntFlag):
    VERIFY_DEFAULT = 0
    VERIFY_CRL_CHECK_LEAF = 4
    VERIFY_CRL_CHECK_CHAIN = 12
    VERIFY_X509_STRICT = 32
    VERIFY_X509_TRUSTED_FIRST = 32768


for _names in (VerifyMode, _SSLMethod, Options, VerifyFlags):
    globals().update(_names.__members__)
PROTOCOL_SSLv23 = _SSLMethod.PROTOCOL_TLS


def _refuse(*args, **kwargs):
    raise PermissionError(13, _NO_SOCKETS)


class SSLContext:
    """Settings of a connection that is never made."""

    sslsocket_class = sslobject_class = None

    def __init__(self, protocol=PROTOCOL_SSLv23):
        self.protocol = protocol
        self.verify_mode = VerifyMode.CERT_REQUIRED
        self.check_hostname = True
        self.options = Options.OP_ALL
        self.verify_flags = VerifyFlags.VERIFY_DEFAULT
        self.minimum_version = TLSVersion.TLSv1_2
        self.maximum_version = TLSVersion.MAXIMUM_SUPPORTED
        self.post_handshake_auth = False
        self.keylog_filename = None

    def set_ciphers(self, ciphers):
        pass

    def set_alpn_protocols(self, protocols):
        pass

    def set_default_verify_paths(self):
        pass

    def load_default_certs(self, purpose=Purpose.SERVER_AUTH):
        pass

    def load_verify_locations(self, cafile=None, capath=None, cadata=None):
        pass

    def get_ca_certs(self, binary_form=False):
        return []

    load_cert_chain = wrap_socket = wrap_bio = _refuse


def create_default_context(purpose=Purpose.SERVER_AUTH, *, cafile=None, capath=None, cadata=None):
    return SSLContext(PROTOCOL_TLS_CLIENT if purpose is Purpose.SERVER_AUTH else PROTOCOL_TLS_SERVER)  # noqa: F821


def _create_unverified_context(*args, **kwargs):
    context = SSLContext()
    context.check_hostname = False
    context.verify_mode = VerifyMode.CERT_NONE
    return context


_create_default_https_context = create_default_context
_create_stdlib_context = _create_unverified_context


class SSLSocket:
    __init__ = _refuse


class SSLObject:
    __init__ = _refuse


class MemoryBIO:
    __init__ = _refuse


class SSLSession:
    __init__ = _refuse


get_server_certificate = DER_cert_to_PEM_cert = PEM_cert_to_DER_cert = _refuse


def get_default_verify_paths():
    _refuse()
