import { createRequire } from 'node:module';

/** Looking at a socket's first bytes without taking them, by system calls that Node does not offer. */
export type SocketPeek = {
  /**
   * Copies up to `into.length` waiting bytes of socket `fd` without consuming them, never blocks.
   * Returns their number, 0 at end of stream, PEEK_AGAIN when nothing has arrived, PEEK_FAILED else.
   * Cost: one system call, about 0.5 µs.
   */
  peek(fd: number, into: Uint8Array): number;
  /** A second descriptor of the same socket, or -1. */
  duplicate(fd: number): number;
  /** Closes a descriptor made by `duplicate` that nobody took. */
  close(fd: number): void;
  /** Linux: wakes accept only once data has arrived, so that nearly every peek succeeds at once. */
  deferAccept(listenFd: number, seconds: number): void;
};

export const PEEK_AGAIN = -1;
export const PEEK_FAILED = -2;

const MSG_PEEK = 2;
const IPPROTO_TCP = 6;
const TCP_DEFER_ACCEPT = 9;

type Koffi = {
  load(path: null): { func(signature: string): (...args: unknown[]) => number };
  errno(): number;
  os: { errno: Record<string, number> };
};

/**
 * Binds the system calls, or returns null where they cannot be had (Windows, no binary of the FFI
 * for this platform): the caller then serves HTTP/2 on a port of its own.
 */
export function loadSocketPeek(): SocketPeek | null {
  if (process.platform !== 'linux' && process.platform !== 'darwin') return null;
  try {
    return bind(createRequire(import.meta.url)('koffi') as Koffi);
  } catch {
    // No binary for this platform or a libc without these symbols; both mean "not available".
    return null;
  }
}

function bind(koffi: Koffi): SocketPeek {
  const libc = koffi.load(null);
  const recv = libc.func('int64_t recv(int fd, _Out_ uint8_t *buf, size_t len, int flags)');
  const dup = libc.func('int dup(int fd)');
  const close = libc.func('int close(int fd)');
  const setsockopt = libc.func(
    'int setsockopt(int fd, int level, int name, const int *val, uint32_t len)',
  );
  const flags = MSG_PEEK | (process.platform === 'linux' ? 0x40 : 0x80); // MSG_DONTWAIT
  const again = koffi.os.errno['EAGAIN'];
  return {
    peek(fd, into) {
      const count = recv(fd, into, into.length, flags);
      if (count >= 0) return count;
      return koffi.errno() === again ? PEEK_AGAIN : PEEK_FAILED;
    },
    duplicate: (fd) => dup(fd),
    close: (fd) => {
      close(fd);
    },
    deferAccept(listenFd, seconds) {
      if (process.platform === 'linux') {
        setsockopt(listenFd, IPPROTO_TCP, TCP_DEFER_ACCEPT, [seconds], 4);
      }
    },
  };
}
