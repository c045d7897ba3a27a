import type { SocketPeek } from '../socket-peek.ts';

/**
 * The sockets that uWebSockets.js has adopted, which names none of them and closes all or none. A descriptor alone would be another's once it
 * is closed, so each is kept with its cookie, which the kernel gives no second socket (SO_COOKIE of socket(7), Linux 4.6).
 */
export class AdoptedSockets {
  readonly #peek: SocketPeek;
  readonly #cookies = new Map<number, bigint>();
  readonly #into = Buffer.allocUnsafeSlow(1);

  constructor(peek: SocketPeek) {
    this.#peek = peek;
  }

  /** False where the system does not name sockets. */
  get canEnd(): boolean {
    return this.#cookies.size > 0;
  }

  /** To be called before `fd` is handed over. An entry of a closed socket with this number is replaced: there are no more than descriptors. */
  add(fd: number): void {
    const cookie = this.#peek.cookie(fd);
    if (cookie !== null) this.#cookies.set(fd, cookie);
  }

  /** Ends those whose client has all its answers, and sent nothing that was not read. For a time in which no request is open. */
  endUnasked(): void {
    const peek = this.#peek;
    for (const [fd, cookie] of this.#cookies) {
      if (peek.cookie(fd) !== cookie) this.#cookies.delete(fd);
      // uWebSockets.js holds back what the kernel does not take: it has nothing where that holds nothing.
      else if (peek.unacknowledged(fd) === 0 && peek.peek(fd, this.#into) <= 0) peek.shutdown(fd);
    }
  }
}
