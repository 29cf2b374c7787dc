"""Sockets, which Dag code does not have: names and constants that importers expect, and one clear refusal."""

import errno as _errno

has_ipv6 = True
error = OSError


class herror(OSError):
    pass


class gaierror(OSError):
    pass


timeout = TimeoutError

AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6 = 0, 1, 2, 10
SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET = 1, 2, 3, 4, 5
SOCK_NONBLOCK, SOCK_CLOEXEC = 0o4000, 0o2000000
SOL_SOCKET, SOL_IP, SOL_TCP, SOL_UDP, SOMAXCONN = 1, 0, 6, 17, 4096
SO_DEBUG, SO_REUSEADDR, SO_TYPE, SO_ERROR, SO_DONTROUTE, SO_BROADCAST, SO_SNDBUF, SO_RCVBUF = 1, 2, 3, 4, 5, 6, 7, 8
SO_KEEPALIVE, SO_OOBINLINE, SO_LINGER, SO_REUSEPORT, SO_RCVTIMEO, SO_SNDTIMEO = 9, 10, 13, 15, 20, 21
IPPROTO_IP, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6, IPPROTO_ICMPV6, IPPROTO_RAW = 0, 1, 6, 17, 41, 58, 255
IPV6_V6ONLY, IP_TTL, IP_TOS, IP_MULTICAST_TTL, IP_MULTICAST_LOOP, IP_ADD_MEMBERSHIP = 26, 2, 1, 33, 34, 35
TCP_NODELAY, TCP_MAXSEG, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_USER_TIMEOUT = 1, 2, 4, 5, 6, 18
MSG_OOB, MSG_PEEK, MSG_DONTROUTE, MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL = 1, 2, 4, 64, 256, 16384
AI_PASSIVE, AI_CANONNAME, AI_NUMERICHOST, AI_V4MAPPED, AI_ALL, AI_ADDRCONFIG, AI_NUMERICSERV = 1, 2, 4, 8, 16, 32, 1024
NI_NUMERICHOST, NI_NUMERICSERV, NI_NOFQDN, NI_NAMEREQD, NI_DGRAM = 1, 2, 4, 8, 16
EAI_AGAIN, EAI_FAIL, EAI_FAMILY, EAI_NONAME, EAI_SERVICE = -3, -4, -6, -2, -8
SHUT_RD, SHUT_WR, SHUT_RDWR = 0, 1, 2
INADDR_ANY, INADDR_BROADCAST, INADDR_LOOPBACK, INADDR_NONE = 0, 0xFFFFFFFF, 0x7F000001, 0xFFFFFFFF

NO_SOCKETS = "sockets are not available in the Dag interpreter; run this task on a Python worker"


def _refuse(*args, **kwargs):
    raise PermissionError(_errno.EACCES, NO_SOCKETS)


class socket:
    """Can be named and subclassed, but not made."""

    __slots__ = ()
    timeout = None
    family = type = proto = 0

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        _refuse()

    bind = close = connect = connect_ex = detach = fileno = getpeername = getsockname = getsockopt = listen = _refuse
    recv = recv_into = recvfrom = send = sendall = sendto = setblocking = setsockopt = settimeout = shutdown = _refuse
    gettimeout = _accept = _refuse


SocketType = socket
getaddrinfo = getnameinfo = gethostbyname = gethostbyname_ex = gethostbyaddr = socketpair = fromfd = dup = _refuse
if_nameindex = if_nametoindex = if_indextoname = sethostname = close = _refuse

_SERVICES = {"http": 80, "https": 443, "ftp": 21, "ssh": 22, "smtp": 25, "domain": 53}


def gethostname():
    return "localhost"


def getservbyname(name, protocol="tcp"):
    if name not in _SERVICES:
        raise OSError("service/proto not found")
    return _SERVICES[name]


def getprotobyname(name):
    protocols = {"icmp": IPPROTO_ICMP, "tcp": IPPROTO_TCP, "udp": IPPROTO_UDP}
    if name not in protocols:
        raise OSError("protocol not found")
    return protocols[name]


def getdefaulttimeout():
    return _default_timeout


def setdefaulttimeout(seconds):
    global _default_timeout
    _default_timeout = seconds


_default_timeout = None


def htons(number):
    return int.from_bytes(number.to_bytes(2, "big"), "little")


def htonl(number):
    return int.from_bytes(number.to_bytes(4, "big"), "little")


ntohs, ntohl = htons, htonl


def inet_aton(text):
    parts = [int(part) for part in text.split(".")]
    if len(parts) != 4 or not all(0 <= part < 256 for part in parts):
        raise OSError("illegal IP address string passed to inet_aton")
    return bytes(parts)


def inet_ntoa(packed):
    if len(packed) != 4:
        raise OSError("packed IP wrong length")
    return ".".join(map(str, packed))


def inet_pton(family, text):
    import ipaddress

    try:
        return (ipaddress.IPv4Address if family == AF_INET else ipaddress.IPv6Address)(text).packed
    except ValueError:
        raise OSError("illegal IP address string passed to inet_pton") from None


def inet_ntop(family, packed):
    import ipaddress

    return str(ipaddress.ip_address(bytes(packed)))
