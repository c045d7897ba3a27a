import type { SocketPeek } from '../socket-peek.ts';

/**
 * Sockets that uWebSockets.js has adopted, which names none of them and closes all or none. A descriptor alone would belong
 * to another socket once it is closed. Each is therefore kept with its cookie, which the kernel gives no second socket
 * (SO_COOKIE of socket(7), Linux 4.6).
 */
export class AdoptedSockets {
  readonly #peek: SocketPeek;
  readonly #cookies = new Map<number, bigint>();
  readonly #into = Buffer.allocUnsafeSlow(1);

  constructor(peek: SocketPeek) {
    this.#peek = peek;
  }

  /** Whether there are sockets to end; false where the system does not name sockets. */
  get canEnd(): boolean {
    return this.#cookies.size > 0;
  }

  /**
   * Adds a socket before `fd` is handed over. Replaces the entry of a closed socket with this number: there are no more
   * entries than descriptors.
   */
  add(fd: number): void {
    const cookie = this.#peek.cookie(fd);
    if (cookie !== null) this.#cookies.set(fd, cookie);
  }

  /**
   * Ends the sockets whose client has all its answers, and sent nothing that was not read. Call it only while no request is
   * open.
   */
  endUnasked(): void {
    const peek = this.#peek;
    for (const [fd, cookie] of this.#cookies) {
      if (peek.cookie(fd) !== cookie) this.#cookies.delete(fd);
      // uWebSockets.js keeps only what the kernel does not take: it has nothing where the kernel holds nothing.
      else if (peek.unacknowledged(fd) === 0 && peek.peek(fd, this.#into) <= 0) peek.shutdown(fd);
    }
  }
}
