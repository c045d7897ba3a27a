import http from 'node:http';
import { onTestFinished } from 'vitest';

export type ClientEvent = {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown>;
};

/**
 * A reader of an event stream with a parser of its own (WHATWG HTML §9.2.6, as far as the stream uses
 * it), so that bytes can be looked at as they came.
 */
export class EventClient {
  readonly events: ClientEvent[] = [];
  readonly headers: http.IncomingHttpHeaders;
  text = '';
  isClosed = false;
  readonly #response: http.IncomingMessage;
  #parts: string[] = [];
  #endsWithNewline = false;
  #wake: (() => void)[] = [];

  private constructor(response: http.IncomingMessage) {
    this.#response = response;
    this.headers = response.headers;
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      this.text += chunk;
      this.#parse(chunk);
    });
    const close = (): void => {
      this.isClosed = true;
      this.#wakeAll();
    };
    response.on('close', close);
    response.on('error', close);
  }

  /** Connects; the stream is dropped when the test ends. Rejects for another status than 200. */
  static open(
    url: string,
    headers: Readonly<Record<string, string>> = {},
    whenDone: (undo: () => void) => void = onTestFinished,
  ): Promise<EventClient> {
    return new Promise((resolve, reject) => {
      const request = http.get(url, { headers, agent: false }, (response) => {
        if (response.statusCode === 200) resolve(new EventClient(response));
        else reject(new Error(`status ${response.statusCode}`));
      });
      request.on('error', reject);
      whenDone(() => {
        request.destroy();
      });
    });
  }

  /** Resolves with all events once `isEnough` of them are there, or the stream has ended. */
  async until(isEnough: (events: readonly ClientEvent[]) => boolean): Promise<ClientEvent[]> {
    while (!this.isClosed && !isEnough(this.events)) {
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
    return this.events;
  }

  /** Resolves when an event of this type has come. */
  async untilType(type: string): Promise<ClientEvent[]> {
    return this.until((events) => events.some(({ event }) => event === type));
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  close(): void {
    this.#response.destroy();
  }

  #parse(chunk: string): void {
    // An event of megabytes comes in hundreds of chunks: they are joined once, where it ends.
    this.#parts.push(chunk);
    if (!chunk.includes('\n\n') && !(chunk.startsWith('\n') && this.#endsWithNewline)) {
      this.#endsWithNewline = chunk.endsWith('\n');
      return;
    }
    const blocks = this.#parts.splice(0).join('').split('\n\n');
    const rest = blocks.pop() ?? '';
    this.#parts.push(rest);
    this.#endsWithNewline = rest.endsWith('\n');
    for (const block of blocks) {
      // Comments and reconnection times are no events.
      if (/^(?::|retry: \d+$)/.test(block)) continue;
      let id = '';
      let event = '';
      let data = '';
      for (const line of block.split('\n')) {
        if (line.startsWith('id: ')) id = line.slice(4);
        else if (line.startsWith('event: ')) event = line.slice(7);
        else if (line.startsWith('data: ')) data += line.slice(6);
        else throw new Error(`not a field: ${line}`);
      }
      this.events.push({ id, event, data: JSON.parse(data) as Record<string, unknown> });
    }
    this.#wakeAll();
  }

  #wakeAll(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }
}
