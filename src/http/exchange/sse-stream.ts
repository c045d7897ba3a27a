import type { HttpExchange } from './http-exchange.ts';

export type SseEvent = {
  /** One line of JSON, or any text: line breaks are encoded as the format wants. */
  readonly data: string;
  readonly event?: string | undefined;
  readonly id?: string | undefined;
};

export type SseOptions = {
  /** A comment is sent this often, so that proxies and clients see a live connection. */
  readonly heartbeatMs: number;
  /** Bytes that may wait for a client that does not read; beyond that its connection is dropped. */
  readonly waitingBytesMax: number;
};

/**
 * Server-Sent Events on one HTTP/1.1 exchange (WHATWG HTML §9.2). A client that falls too far
 * behind is dropped rather than buffered for: it reconnects with Last-Event-ID.
 */
export class SseStream {
  readonly #exchange: HttpExchange;
  readonly #options: SseOptions;
  readonly #heartbeat: NodeJS.Timeout;
  #waitingBytes = 0;
  #onClose: (() => void) | null = null;

  /** Sends the head of the answer at once. */
  constructor(exchange: HttpExchange, options: SseOptions, extra: readonly string[] = []) {
    this.#exchange = exchange;
    this.#options = options;
    exchange.onAborted(() => this.#closed());
    exchange.begin(200, 'text/event-stream', ['cache-control', 'no-store', ...extra]);
    this.#heartbeat = setInterval(() => this.#write(':\n\n'), options.heartbeatMs);
    this.#heartbeat.unref();
  }

  /** Called once, when the stream has ended for whatever reason. One listener. */
  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  get isOpen(): boolean {
    return !this.#exchange.isEnded;
  }

  /** Sends an event; does nothing once the client has gone. */
  send(event: SseEvent): void {
    this.#write(encodeSseEvent(event));
  }

  /** Completes the answer. */
  end(): void {
    if (!this.isOpen) return;
    this.#exchange.finish();
    this.#closed();
  }

  #write(text: string): void {
    if (!this.isOpen) return;
    if (this.#waitingBytes > 0 || !this.#exchange.write(text)) this.#hold(text);
  }

  /** The connection keeps what the kernel does not take; here it is only counted. */
  #hold(text: string): void {
    if (this.#waitingBytes > 0) this.#exchange.write(text);
    else {
      this.#exchange.onWritable(() => {
        this.#waitingBytes = 0;
      });
    }
    this.#waitingBytes += Buffer.byteLength(text);
    if (this.#waitingBytes > this.#options.waitingBytesMax) this.#exchange.abort();
  }

  #closed(): void {
    clearInterval(this.#heartbeat);
    const listener = this.#onClose;
    this.#onClose = null;
    listener?.();
  }
}

/** The wire form of an event. `id` and `event` lose line breaks, which would end the field. */
export function encodeSseEvent(event: SseEvent): string {
  let text = '';
  if (event.id !== undefined) text += `id: ${oneLine(event.id)}\n`;
  if (event.event !== undefined) text += `event: ${oneLine(event.event)}\n`;
  for (const line of event.data.split(/\r\n|\n|\r/)) text += `data: ${line}\n`;
  return `${text}\n`;
}

function oneLine(value: string): string {
  return value.replaceAll(/[\r\n\0]/g, '');
}
