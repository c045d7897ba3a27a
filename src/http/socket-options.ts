/** Options of sockets by their descriptors, by system calls that Node does not offer. */
export type SocketOptions = {
  /** An id of the socket, unique while the machine runs; null where `fd` is no socket, or the system has no such id. */
  cookie(fd: number): bigint | null;
  /** Linux: the kernel takes no more while it holds `bytes` that it has not sent (TCP_NOTSENT_LOWAT of tcp(7)). */
  boundUnsent(fd: number, bytes: number): void;
  /** Linux: bytes that the peer has not acknowledged (SIOCOUTQ of tcp(7)); elsewhere 0. */
  unacknowledged(fd: number): number;
  /** Ends both directions: the owner of the socket sees its end, and closes it. */
  shutdown(fd: number): void;
  /** Linux: wakes accept only once data has arrived, so that nearly every peek succeeds at once. */
  deferAccept(listenFd: number, seconds: number): void;
  /** Linux: the kernel lets no new client in at this socket. A client gets no answer, and tries again after a second. */
  letNobodyIn(listenFd: number): void;
};

const IPPROTO_TCP = 6;
const TCP_DEFER_ACCEPT = 9;
const TCP_NOTSENT_LOWAT = 25;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_COOKIE = 57;
const SHUT_RDWR = 2;
const SIOCOUTQ = 0x5411;
/**
 * Classic BPF over a TCP header (RFC 9293 section 3.1; Linux, Documentation/networking/filter.rst). It drops the segments
 * that have SYN and not ACK, which open connections, and keeps all others.
 */
const DROP_OPENING = [
  { code: 0x30, jt: 0, jf: 0, k: 13 }, // load the byte of flags
  { code: 0x54, jt: 0, jf: 0, k: 0x12 }, // of them ACK and SYN
  { code: 0x15, jt: 0, jf: 1, k: 0x02 }, // SYN alone?
  { code: 0x06, jt: 0, jf: 0, k: 0 }, // drop
  { code: 0x06, jt: 0, jf: 0, k: 0xffff_ffff }, // keep
];
const SOCK_FPROG_BYTES = 16;

/** The used part of koffi. */
export type PeekLibrary = {
  load(path: null): {
    func(signature: string): (...args: unknown[]) => number;
    func(name: string, result: string, args: readonly unknown[]): (...args: unknown[]) => number;
  };
  struct(members: Readonly<Record<string, unknown>>): unknown;
  pointer(type: unknown): unknown;
  errno(): number;
  os: { errno: Record<string, number> };
};

type Libc = ReturnType<PeekLibrary['load']>;

/** Binds the options in `libc`. Errors: those of koffi, where a symbol is missing. */
export function bindOptions(koffi: PeekLibrary, libc: Libc): SocketOptions {
  const isLinux = process.platform === 'linux';
  const setsockopt = libc.func(
    'int setsockopt(int fd, int level, int name, const int *val, uint32_t len)',
  );
  // Without names: the process may bind them more than once.
  const filter = koffi.struct({ code: 'uint16', jt: 'uint8', jf: 'uint8', k: 'uint32' });
  const program = koffi.struct({ len: 'uint16', filter: koffi.pointer(filter) });
  const attach = libc.func('setsockopt', 'int', [
    'int',
    'int',
    'int',
    koffi.pointer(program),
    'uint32',
  ]);
  const getsockopt = libc.func(
    'int getsockopt(int fd, int level, int name, _Out_ uint8_t *val, _Inout_ uint32_t *len)',
  );
  const ioctl = libc.func('int ioctl(int fd, unsigned long request, _Out_ int *value)');
  const shutdown = libc.func('int shutdown(int fd, int how)');
  const cookieBytes = Buffer.allocUnsafeSlow(8);
  return {
    cookie(fd) {
      if (!isLinux) return null;
      const isFound =
        getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookieBytes, [cookieBytes.length]) === 0;
      return isFound ? cookieBytes.readBigUInt64LE() : null;
    },
    boundUnsent(fd, bytes) {
      if (isLinux) setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, [bytes], 4);
    },
    unacknowledged(fd) {
      const value = [0];
      return isLinux && ioctl(fd, SIOCOUTQ, value) === 0 ? (value[0] ?? 0) : 0;
    },
    shutdown: (fd) => {
      shutdown(fd, SHUT_RDWR);
    },
    deferAccept(listenFd, seconds) {
      if (isLinux) {
        setsockopt(listenFd, IPPROTO_TCP, TCP_DEFER_ACCEPT, [seconds], 4);
      }
    },
    letNobodyIn(listenFd) {
      if (!isLinux) return;
      const drops = { len: DROP_OPENING.length, filter: DROP_OPENING };
      attach(listenFd, SOL_SOCKET, SO_ATTACH_FILTER, drops, SOCK_FPROG_BYTES);
    },
  };
}
