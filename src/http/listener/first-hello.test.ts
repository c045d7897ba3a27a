import { once } from 'node:events';
import { Duplex } from 'node:stream';
import tls from 'node:tls';
import { expect, test } from 'vitest';
import { firstHelloOf } from './first-hello.ts';

const ROOM_BYTES = 16_385;

/** The ClientHello that Node.js sends. */
async function helloOf(options: tls.ConnectionOptions): Promise<Buffer> {
  const socket = new Duplex({ read: () => undefined });
  const sent = new Promise<Buffer>((resolve) => {
    socket._write = (chunk: Buffer) => resolve(chunk);
  });
  const client = tls.connect({ ...options, socket });
  client.on('error', () => undefined);
  const hello = await sent;
  client.destroy();
  await once(client, 'close');
  return hello;
}

/** Classifies a hello that is in the listener's memory. */
function look(hello: Uint8Array, count = hello.length): string {
  const room = Buffer.alloc(ROOM_BYTES, 0xff);
  room.set(hello);
  return firstHelloOf(room, count);
}

test.each([
  [['h2'], 'http2'],
  [['http/1.1', 'h2'], 'http2'],
  [['h2c', 'xh2', 'h', 'h3'], 'other'],
  [['http/1.1'], 'other'],
  [undefined, 'other'],
] as const)('ALPN %j', async (ALPNProtocols, found) => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const hello = await helloOf({
      ALPNProtocols: ALPNProtocols === undefined ? undefined : [...ALPNProtocols],
      servername: 'example.org',
      maxVersion,
    });
    expect(look(hello)).toBe(found);
    // Bytes that follow in the same segment are not read.
    expect(look(Buffer.concat([hello, Buffer.from('later')]))).toBe(found);
    for (let count = 1; count < hello.length; count++) expect(look(hello, count)).toBe('partial');
  }
});

test('what is no TLS is none', () => {
  for (const text of ['GET / HTTP/1.1\r\n', 'PRI * HTTP/2.0\r\n', '', '\x17\x03\x03\0\x01']) {
    expect(look(Buffer.from(text, 'latin1'))).toBe('none');
  }
  expect(look(Buffer.from([0x16, 0x02, 0, 0, 5]))).toBe('none');
});

test('a record that is too long to be looked at is not waited for', () => {
  expect(look(Buffer.from([0x16, 3, 1, 0xff, 0xff]))).toBe('other');
});

test('lengths that point anywhere: never more than the record is read, and no loop', async () => {
  const hello = await helloOf({ ALPNProtocols: ['h2'] });
  for (let at = 5; at < hello.length; at++) {
    for (const byte of [0, 1, 0x7f, 0xff]) {
      const changed = Buffer.from(hello);
      changed[at] = byte;
      expect(['http2', 'other']).toContain(look(changed));
    }
  }
});

/** A ClientHello with nothing but `extensions`, in a record that is `cutBytes` shorter, and says that they are. */
function helloWith(extensions: Uint8Array, cutBytes = 0): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(extensions.length);
  const fixed = Buffer.from([0x16, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3, ...new Uint8Array(32)]);
  // No session, one suite, one compression.
  const hello = Buffer.concat([fixed, Buffer.from([0, 0, 2, 0x13, 1, 1, 0]), length, extensions]);
  hello.writeUInt16BE(hello.length - 5 - cutBytes, 3);
  return hello;
}

test('an offer counts where it lies within the extensions, and they within the record', () => {
  const alpn = Buffer.from('\0\x10\0\x05\0\x03\x02h2', 'latin1');
  const other = Buffer.from('\0\x0b\0\x02\x01\0', 'latin1');
  expect(look(helloWith(Buffer.concat([other, alpn])))).toBe('http2');
  expect(look(helloWith(alpn, 1))).toBe('other');
  expect(look(Buffer.concat([helloWith(other), alpn]))).toBe('other');
  const behind = Buffer.concat([helloWith(other), alpn]);
  behind.writeUInt16BE(behind.length - 5, 3);
  expect(look(behind)).toBe('other');
});
