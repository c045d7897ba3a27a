import { createRequire } from 'node:module';
import type net from 'node:net';
import { bindOptions, type PeekLibrary, type SocketOptions } from './socket-options.ts';

/** System calls, which Node does not offer, to read a socket's first bytes without consuming them. */
export type SocketPeek = SocketOptions & {
  /**
   * Copies up to `into.length` waiting bytes of socket `fd` without consuming them; never blocks. Returns their number, 0 at
   * end of stream, PEEK_AGAIN when nothing has arrived, otherwise PEEK_FAILED.
   * Cost: one system call, about 0.5 µs.
   */
  peek(fd: number, into: Uint8Array): number;
  /**
   * Marks which of the first `count` entries of `polled` have something to read, or have ended. An entry is a struct pollfd
   * as two numbers: the descriptor, and POLLIN. The upper half of the second is not 0 afterwards where there is something.
   * Never blocks.
   * Cost: one system call, about 50 ns an entry.
   */
  poll(polled: Int32Array, count: number): void;
  /**
   * Makes a second descriptor of the same socket; -1 on failure. Programs that this process starts inherit neither it nor one
   * of `accept`: the connection would stay open for as long as they run.
   */
  duplicate(fd: number): number;
  /** Accepts a connection that waits at `listenFd`, which does not block. Returns its descriptor; -1 when none waits. */
  accept(listenFd: number): number;
  /** Closes a descriptor of `duplicate` or `accept` that was not passed on. */
  close(fd: number): void;
};

export const PEEK_AGAIN = -1;
export const PEEK_FAILED = -2;
export const POLLIN = 1;

const MSG_PEEK = 2;
const SOCK_NONBLOCK_CLOEXEC = 0x8_0800;
const F_SETFD = 2;
const FD_CLOEXEC = 1;
/** POSIX.1-2008 fcntl; each system has its own number for it. */
const F_DUPFD_CLOEXEC = process.platform === 'linux' ? 1030 : 67;

/**
 * Binds the system calls. Returns null where they are not available (Windows, or no binary of the FFI for this platform). The
 * caller then serves HTTP/2 on a separate port.
 */
export function loadSocketPeek(): SocketPeek | null {
  if (process.platform !== 'linux' && process.platform !== 'darwin') return null;
  try {
    return bind(createRequire(import.meta.url)('koffi') as PeekLibrary);
  } catch {
    // No binary for this platform or a libc without these symbols; both mean "not available".
    return null;
  }
}

function bind(koffi: PeekLibrary): SocketPeek {
  const libc = koffi.load(null);
  const recv = libc.func('int64_t recv(int fd, _Out_ uint8_t *buf, size_t len, int flags)');
  const isLinux = process.platform === 'linux';
  const nfds = isLinux ? 'unsigned long' : 'unsigned int';
  const poll = libc.func(`int poll(_Inout_ int32_t *fds, ${nfds} nfds, int timeout)`);
  const close = libc.func('int close(int fd)');
  const accept4 = isLinux
    ? libc.func('int accept4(int fd, void *address, void *length, int flags)')
    : libc.func('int accept(int fd, void *address, void *length)');
  const fcntl = libc.func('int fcntl(int fd, int command, ...)');
  const flags = MSG_PEEK | (isLinux ? 0x40 : 0x80); // MSG_DONTWAIT
  const again = koffi.os.errno['EAGAIN'];
  return {
    peek(fd, into) {
      const count = recv(fd, into, into.length, flags);
      if (count >= 0) return count;
      return koffi.errno() === again ? PEEK_AGAIN : PEEK_FAILED;
    },
    poll: (polled, entries) => {
      poll(polled, entries, 0);
    },
    duplicate: (fd) => fcntl(fd, F_DUPFD_CLOEXEC, 'int', 0),
    accept: (listenFd) => {
      if (isLinux) return accept4(listenFd, null, null, SOCK_NONBLOCK_CLOEXEC);
      const fd = accept4(listenFd, null, null);
      if (fd >= 0) fcntl(fd, F_SETFD, 'int', FD_CLOEXEC);
      return fd;
    },
    close: (fd) => {
      close(fd);
    },
    ...bindOptions(koffi, libc),
  };
}

/** The descriptor under a server or socket; -1 once it is closed or where the platform has none. */
export function descriptorOf(handleOwner: net.Server | net.Socket): number {
  return (handleOwner as unknown as { _handle: { fd?: number } | null })._handle?.fd ?? -1;
}
