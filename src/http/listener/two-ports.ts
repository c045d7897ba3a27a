import net from 'node:net';
import { listenOn } from './sniffing-listener.ts';

export type TwoPortsOptions = {
  readonly host: string;
  /** Port of HTTP/1; HTTP/2 has the next. 0 takes any free ones. */
  readonly port: number;
  /** False closes a new connection at once. */
  readonly admits: () => boolean;
  readonly onHttp1: (socket: net.Socket) => void;
  /** Null where HTTP/2 is not served. */
  readonly onHttp2: ((socket: net.Socket) => void) | null;
};

/**
 * A port for each protocol, for platforms where first bytes cannot be peeked at. Sockets are handed over paused, with their
 * bytes unread.
 */
export class TwoPorts {
  readonly #options: TwoPortsOptions;
  readonly #servers: net.Server[] = [];

  constructor(options: TwoPortsOptions) {
    this.#options = options;
  }

  /** Binds both ports or none. Errors: rejects with the system's error, or one that says that HTTP/2 has the next port. */
  async listen(): Promise<{ readonly port: number; readonly http2Port: number }> {
    const { port: wanted, onHttp1, onHttp2 } = this.#options;
    const port = await this.#bind(onHttp1, wanted, true);
    if (onHttp2 === null) return { port, http2Port: port };
    const next = wanted === 0 ? 0 : wanted + 1;
    const http2Port = await this.#bind(onHttp2, next, false).catch((cause: unknown) => {
      this.close();
      throw new Error(`HTTP/2 has port ${next} here, the next one: ${String(cause)}`, { cause });
    });
    return { port, http2Port };
  }

  /** Stops accepting. Idempotent. */
  close(): void {
    for (const server of this.#servers) server.close();
  }

  async #bind(
    take: (socket: net.Socket) => void,
    port: number,
    allowHalfOpen: boolean,
  ): Promise<number> {
    const { host, admits } = this.#options;
    const options = { noDelay: true, pauseOnConnect: true, allowHalfOpen };
    const server = net.createServer(options, (socket) => {
      if (admits()) take(socket);
      else socket.destroy();
    });
    this.#servers.push(server);
    await listenOn(server, { host, port });
    return (server.address() as net.AddressInfo).port;
  }
}
