import { expect, test } from 'vitest';
import type { UwsRawResponse } from './uws-binary.ts';
import { UwsResponse } from './uws-response.ts';

const CORK_BYTES = 16_384;
const FORM = {
  isHead: false,
  hasBody: false,
  isCoded: false,
  isClosedByUws: false,
  closes: false,
};

/** Writes as uWebSockets.js 20 does: what is short waits for the end of a cork, and what the kernel does not take waits for the next write. */
class SlowConnection {
  /** Bytes that the kernel still takes. */
  room = 0;
  taken = '';
  #corked: string | null = null;
  #backlog = '';
  #onWritable: ((offset: number) => boolean) | null = null;

  readonly raw = {
    onWritable: (handler: (offset: number) => boolean) => (this.#onWritable = handler),
    cork: (handler: () => void) => {
      this.#corked = '';
      handler();
      const bytes = this.#corked;
      this.#corked = null;
      this.#send(bytes);
    },
    writeHeader: () => undefined,
    write: (chunk: string | Uint8Array) => {
      const bytes = Buffer.from(chunk as Uint8Array).toString('latin1');
      const isKept = this.#corked !== null && this.#backlog === '' && bytes.length <= CORK_BYTES;
      if (!isKept) return this.#send(bytes);
      this.#corked += bytes;
      return true;
    },
  } as unknown as UwsRawResponse;

  /** The client reads what was sent, which makes room. */
  read(room = 200_000): void {
    this.room = room;
    if (this.#backlog === '') return;
    if (this.#onWritable === null) this.#send('');
    else this.#onWritable(0);
  }

  #send(bytes: string): boolean {
    const all = this.#backlog + bytes;
    this.taken += all.slice(0, this.room);
    this.#backlog = all.slice(this.room);
    this.room -= all.length - this.#backlog.length;
    return this.#backlog === '';
  }
}

const ANSWERS = {
  kept: 'timeout=8',
  keptField: '\r\nkeep-alive: timeout=8',
  discardBytesMax: 1_000,
};

test.each(['text/event-stream', 'application/connect+json'])(
  'the last part of a %s arrives without a further one, each time its client was slow',
  (type) => {
    const connection = new SlowConnection();
    const response = new UwsResponse(connection.raw, FORM, ANSWERS);
    const part = Buffer.from(`${'e'.repeat(900)}\n\n`);
    let waiting = 0;
    const write = (): void =>
      response.cork(() => {
        if (response.write(part)) return;
        waiting += 1;
        response.onWritable(() => true);
      });
    response.cork(() => response.writeHeader('content-type', type));
    write();
    write();
    expect(waiting).toBe(1);
    connection.read();
    connection.room = 100;
    write();
    connection.read();
    expect(connection.taken.match(/e/g)).toHaveLength(3 * 900);
  },
);

test('what waits for a slow client is copied once, and arrives in order', () => {
  const connection = new SlowConnection();
  const response = new UwsResponse(connection.raw, FORM, ANSWERS);
  let copied = 0;
  const concat = Buffer.concat.bind(Buffer);
  Buffer.concat = (list, length) => {
    const whole = concat(list, length);
    copied += whole.length;
    return whole;
  };
  let sent = '';
  try {
    response.cork(() => response.writeHeader('content-type', 'text/event-stream'));
    for (let i = 0; i < 2_000; i++) {
      sent += `data: ${i}\n\n`;
      response.cork(() => void response.write(`data: ${i}\n\n`));
    }
  } finally {
    Buffer.concat = concat;
  }
  expect(copied).toBeLessThanOrEqual(sent.length);
  const received = (): string => connection.taken.replaceAll(':\n\n', '');
  while (received().length < sent.length) connection.read(5_000);
  expect(received()).toBe(sent);
});
