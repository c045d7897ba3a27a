import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import tls from 'node:tls';
import { describe, expect, type TestContext, test } from 'vitest';
import { createHttpServer } from '../../src/http/listener/http-server.ts';
import { isOfPlatform, PARSERS } from '../support/http1-parsers.ts';
import { byLength, inShort } from '../support/test-length.ts';
import { RawClient, rawCheck, startServer, waitFor, type TestServer } from './start-server.ts';

/** A server of one test, which is told as it is one of several that run at once. */
type Target = TestServer & { readonly context: TestContext };

async function start(
  context: TestContext,
  options: Parameters<typeof startServer>[0] = {},
): Promise<Target> {
  const target = await startServer(options);
  context.onTestFinished(() => target.server.stop(0));
  return { ...target, context };
}

function connect({ port, context }: Target): RawClient {
  const client = new RawClient(port);
  context.onTestFinished(() => {
    client.socket.destroy();
  });
  return client;
}

/** Resolves when nothing of the clients is left with the server. */
function settled(target: TestServer): Promise<void> {
  return waitFor(() => target.server.connectionCount === 0 && target.server.inFlightCount === 0);
}

// Most of their time they wait for a server that waits for them.
inShort(describe.concurrent)('finding out the protocol', () => {
  test('HTTP/1.1 and HTTP/2 on one port', async (context) => {
    const target = await start(context, { limits: { http1IdleMs: 100 } });
    expect((await fetch(`${target.baseUrl}/healthz`)).status).toBe(200);
    const session = http2.connect(target.baseUrl);
    const stream = session.request({ ':path': '/healthz-of-http2', ':method': 'POST' });
    const status = await new Promise((resolve) => {
      stream.on('response', (headers) => resolve(headers[':status']));
      stream.resume();
    });
    expect(status).toBe(404);
    session.close();
    await settled(target);
  });

  test.for([
    [['h2', 'http/1.1'], ', and offered HTTP/2'],
    [['http/1.1'], ''],
  ] as const)(
    'TLS is refused in plain text and told of: %j',
    async ([protocols, offer], context) => {
      const incidents: [event: string, detail: string][] = [];
      const server = createHttpServer({
        host: '127.0.0.1',
        port: 0,
        onIncident: (...incident) => {
          if (!isOfPlatform(incident[0])) incidents.push(incident);
        },
      });
      context.onTestFinished(() => server.stop(0));
      const { port } = await server.listen();
      const client = tls.connect({ port, host: '127.0.0.1', ALPNProtocols: [...protocols] });
      const [error] = (await once(client, 'error')) as [NodeJS.ErrnoException];
      expect(error.code).toMatch(/^ERR_SSL_/);
      const detail = `127.0.0.1 began TLS on port ${port}, which serves plain text${offer}`;
      expect(incidents).toEqual([['tls_refused', detail]]);
    },
  );

  test('half a ClientHello is waited for as half a head is', async (context) => {
    const target = await start(context, { limits: { sniffTimeoutMs: 300 } });
    const client = connect(target);
    client.socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]));
    await client.closed;
    expect(client.received).toBe('');
    expect(target.incidents).toEqual([]);
    await settled(target);
  });

  test('on a port for each where the port cannot be shared', async (context) => {
    const target = await start(context, { isPortShared: false, limits: { connectionsMax: 2 } });
    expect(target.http2Port).not.toBe(target.port);
    const kept = await fetch(`${target.baseUrl}/healthz`);
    expect([kept.status, kept.headers.get('keep-alive')]).toEqual([200, 'timeout=120']);
    expect(target.server.http1Counts).toEqual({ uws: 0, node: 1 });
    expect(target.incidents).toEqual(['http1_on_node', 'http2_port']);
    const session = http2.connect(`http://127.0.0.1:${target.http2Port}`);
    context.onTestFinished(() => session.destroy());
    const [settings] = (await once(session, 'remoteSettings')) as [http2.Settings];
    expect(settings).toMatchObject({ maxConcurrentStreams: 256, initialWindowSize: 1_048_576 });
    const stream = session.request({ ':path': '/x', ':method': 'POST' });
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    expect(headers[':status']).toBe(404);
    // Both ports count against one limit.
    const third = new RawClient(target.http2Port);
    await third.closed;
    expect(target.incidents).toContain('connection_limit');
    const waiting = fetch(`${target.baseUrl}/workspace.v1.AuthzService/Check`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"object_id":"wait:100","subject_user_id":"alice"}',
    });
    await waitFor(() => target.begun.length > 0);
    const goaway = once(session, 'goaway');
    const stopped = target.server.stop(5_000);
    await goaway;
    expect((await waiting).status).toBe(200);
    await stopped;
    expect(target.server.connectionCount).toBe(0);
  });

  test('where the second port is taken neither is held', async (context) => {
    const taken = net.createServer();
    context.onTestFinished(() => void taken.close());
    const first = net.createServer();
    // Two ports in a row, the second of which is taken.
    for (;;) {
      await new Promise<void>((resolve) => first.listen(0, '127.0.0.1', resolve));
      const { port } = first.address() as net.AddressInfo;
      const isTaken = await new Promise<boolean>((resolve) => {
        taken.once('error', () => resolve(false));
        taken.listen(port + 1, '127.0.0.1', () => resolve(true));
      });
      await new Promise((resolve) => first.close(resolve));
      if (!isTaken) continue;
      const server = createHttpServer({
        host: '127.0.0.1',
        port,
        isPortShared: false,
        http2: { onStream: () => undefined },
      });
      await expect(server.listen()).rejects.toThrow(
        `HTTP/2 has port ${port + 1} here, the next one: Error: listen EADDRINUSE`,
      );
      await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed');
      await server.stop(0);
      return;
    }
  });

  test('HTTP/1.1 alone is told of where it was asked for', async (context) => {
    const target = await start(context, { isPortShared: false, http1: 'node' });
    expect(target.incidents).toEqual(['http2_port']);
  });

  test('first bytes that come one by one', async (context) => {
    const target = await start(context);
    const client = connect(target);
    client.socket.setNoDelay(true);
    for (const byte of rawCheck('a').slice(0, 12)) {
      client.socket.write(byte);
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    client.socket.write(rawCheck('a').slice(12));
    await client.until('{"allowed":true}');
    expect(client.received).toContain('{"allowed":true}');
  });

  test.for(['', 'P', 'PR', 'GET / HT'])(
    'a connection that sends "%s" is closed in time',
    async (text, context) => {
      const target = await start(context, { limits: { sniffTimeoutMs: 100 } });
      const client = connect(target);
      client.socket.write(text);
      await client.closed;
      expect(client.received).toBe('');
      await settled(target);
    },
  );

  test('an HTTP/2 preface without a handshake is closed in time', async (context) => {
    const target = await start(context, { limits: { http2HandshakeMs: 100 } });
    const client = connect(target);
    client.socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    await client.closed;
    await settled(target);
  });

  test('silent connections make room for new ones and hold up nobody', async (context) => {
    const target = await start(context, { limits: { sniffingMax: 20 } });
    const silent = Array.from({ length: 60 }, () => connect(target));
    await waitFor(() => silent.filter((client) => client.isClosed).length >= 30);
    expect((await fetch(`${target.baseUrl}/healthz`)).status).toBe(200);
    expect(target.server.connectionCount).toBeLessThanOrEqual(22);
  });

  test('beyond the limit of connections new ones are closed', async (context) => {
    const target = await start(context, { limits: { connectionsMax: 3 } });
    const clients = Array.from({ length: 6 }, () => connect(target));
    for (const client of clients) client.socket.write(rawCheck('wait:200'));
    await Promise.all(clients.map((client) => client.until('allowed')));
    expect(clients.filter((client) => client.received.includes('allowed')).length).toBe(3);
    expect(target.incidents).toContain('connection_limit');
  });
});

inShort(describe.concurrent)('requests that go wrong', () => {
  test('a body that trickles is cut', async (context) => {
    const target = await start(context, { limits: { bodyTimeoutMs: 200 } });
    const client = connect(target);
    const text = rawCheck('a');
    client.socket.write(text.slice(0, -20));
    const trickle = setInterval(() => client.socket.write(' '), 50);
    context.onTestFinished(() => clearInterval(trickle));
    await client.closed;
    expect(client.received).not.toContain('200 OK');
    await settled(target);
  });

  test('a body that trickles over HTTP/2 is cut', async (context) => {
    const target = await start(context, { limits: { bodyTimeoutMs: 200 } });
    const session = http2.connect(target.baseUrl);
    context.onTestFinished(() => session.destroy());
    const stream = session.request({
      ':path': '/workspace.v1.AuthzService/Check',
      ':method': 'POST',
      'content-type': 'application/json',
    });
    stream.on('error', () => undefined);
    stream.write('{"namespace":');
    await new Promise((resolve) => stream.on('close', resolve));
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_CANCEL);
  });

  test('headers over the limit are refused', async (context) => {
    const target = await start(context);
    const client = connect(target);
    client.socket.write(
      `GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(20_000)}\r\n\r\n`,
    );
    await client.closed;
    expect(client.received).not.toContain('200 OK');
    const fits = await fetch(`${target.baseUrl}/healthz`, {
      headers: { 'x-long': 'x'.repeat(10_000) },
    });
    expect(fits.status).toBe(200);
  });

  test('garbage is refused', async (context) => {
    const target = await start(context, { limits: { sniffTimeoutMs: 500 } });
    for (const text of [
      '\0\0\0\0\r\n\r\n',
      'GET\r\n\r\n',
      'POST / HTTP/9.9\r\n\r\n',
      '{}\n\n\n\n',
    ]) {
      const client = connect(target);
      client.socket.write(text);
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(client.received).not.toContain('200 OK');
      client.socket.destroy();
    }
    await settled(target);
  });

  test('a client that closes its half after the request', async (context) => {
    const target = await start(context);
    const client = connect(target);
    client.socket.end(rawCheck('wait:50', 'half-closed'));
    await client.closed;
    await settled(target);
  });

  test('a client that goes away aborts the call, on both protocols', async (context) => {
    const target = await start(context);
    const client = connect(target);
    client.socket.write(rawCheck('wait:20000', 'over-http1'));
    await waitFor(() => target.server.inFlightCount === 1);
    client.socket.destroy();
    await waitFor(() => target.aborted.includes('over-http1'));

    const session = http2.connect(target.baseUrl);
    const stream = session.request({
      ':path': '/workspace.v1.AuthzService/Check',
      ':method': 'POST',
      'content-type': 'application/json',
    });
    stream.on('error', () => undefined);
    stream.end(JSON.stringify({ object_id: 'wait:20000', relation: 'over-http2' }));
    await waitFor(() => target.server.inFlightCount === 1);
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await waitFor(() => target.aborted.includes('over-http2'));
    session.close();
    await settled(target);
    expect(target.failures).toEqual([]);
  });

  test('a client that goes away in the middle of its body', async (context) => {
    const target = await start(context);
    for (let i = 0; i < 10; i++) {
      const client = connect(target);
      client.socket.write(rawCheck('a').slice(0, -1 - 2 * i));
      await waitFor(() => target.server.inFlightCount === 1);
      client.socket.destroy();
      await settled(target);
    }
    expect(target.failures).toEqual([]);
  });

  test('one connection serves on after an error, an oversized body and a refused verb', async (context) => {
    const target = await start(context);
    const client = connect(target);
    const oversized = 'x'.repeat(300_000);
    client.socket.write(
      `POST /workspace.v1.AuthzService/Check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n` +
        `content-length: ${oversized.length}\r\n\r\n${oversized}`,
    );
    await client.until('resource_exhausted');
    client.socket.write('GET /workspace.v1.AuthzService/Check HTTP/1.1\r\nhost: x\r\n\r\n');
    await client.until('405');
    client.socket.write(
      `PUT /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: ${oversized.length}\r\n\r\n${oversized}`,
    );
    await client.until('404 Not Found');
    client.socket.write(rawCheck('a'));
    await client.until('"allowed":true');
    expect(client.received).toContain('"allowed":true');
  });

  test('a chunked body over the limit', async (context) => {
    const target = await start(context);
    const client = connect(target);
    client.socket.write(
      'POST /workspace.v1.AuthzService/Check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n' +
        'transfer-encoding: chunked\r\n\r\n',
    );
    for (let i = 0; i < 30; i++) client.socket.write(`2710\r\n${'x'.repeat(10_000)}\r\n`);
    client.socket.write('0\r\n\r\n');
    await client.until('resource_exhausted');
    expect(client.received).toContain('429 Too Many Requests');
  });
});

const KEPT = byLength(300, 2_000);

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(() => setImmediate(resolve), 0);
  });
}

/** Connects; `ask` sends a request and resolves with what came of it. */
async function letIn(port: number): Promise<{ ask: () => Promise<string> }> {
  const socket = net.connect(port, '127.0.0.1');
  let received = '';
  socket.on('data', (bytes) => (received += bytes.toString()));
  const ended = new Promise<string>((resolve) => {
    const end = (otherwise: string): void =>
      resolve(received.includes('"allowed":true') ? 'answered' : otherwise);
    socket.once('error', () => end('reset'));
    socket.once('close', () => end('closed'));
  });
  await once(socket, 'connect');
  return {
    ask: () => {
      socket.write(rawCheck('a'));
      return ended;
    },
  };
}

inShort(describe.concurrent)('drain', () => {
  test('keep-alive connections are asked to go, what is in flight ends, nothing new is accepted', async (context) => {
    const target = await start(context);
    const idle = connect(target);
    idle.socket.write(rawCheck('a'));
    await idle.until('"allowed":true');
    const busy = connect(target);
    busy.socket.write(rawCheck('wait:300'));
    await waitFor(() => target.server.inFlightCount === 1);

    target.server.beginDrain();
    const late = connect(target);
    late.socket.write(rawCheck('a'));
    await late.until('"allowed":true');
    expect(late.received.toLowerCase()).toContain('connection: close');
    await late.closed;

    const stopped = target.server.stop(5_000);
    await busy.closed;
    expect(busy.received).toContain('"allowed":true');
    expect(busy.received.toLowerCase()).toContain('connection: close');
    await stopped;
    await idle.closed;
    const refused = connect(target);
    await refused.closed;
    expect(refused.received).toBe('');
    expect(target.incidents).not.toContain('drain_deadline');
  });

  test('who was let in before the end is answered, also where the server had not looked yet', async (context) => {
    const target = await start(context);
    const silent = connect(target);
    await waitFor(() => target.server.connectionCount === 1);
    // The kernel hands over a connection when its first bytes have come.
    const crowd = await Promise.all(Array.from({ length: 100 }, () => letIn(target.port)));
    target.server.beginDrain();
    silent.socket.write(rawCheck('a'));
    await silent.until('"allowed":true');
    expect(silent.received.toLowerCase()).toContain('connection: close');
    const ends = crowd.map(({ ask }) => ask());
    await target.server.stop(5_000);
    expect(new Set(await Promise.all(ends))).toEqual(new Set(['answered']));
  });

  test.for(PARSERS)(
    'kept connections that ask at any moment of a stop are answered, or closed before: %s',
    { timeout: 60_000 },
    async (http1, context) => {
      const target = await start(context, { http1 });
      const clients = Array.from({ length: KEPT }, () => connect(target));
      for (const { socket } of clients) socket.setNoDelay(true).write(rawCheck('a', 'first'));
      await waitFor(() => clients.every(({ received }) => received.includes('"allowed":true')));
      for (const client of clients) client.received = '';
      let isStopped = false;
      const ask = async (client: RawClient, i: number): Promise<string> => {
        let isReset = false;
        client.socket.once('error', () => (isReset = true));
        // Some before the stop, most while it goes on.
        const turns = i % 200;
        for (let n = 0; n < turns && !isStopped && !client.isClosed; n++) await turn();
        if (client.isClosed) return 'closed before';
        client.socket.write(rawCheck(`wait:${i % 20}`, `second-${i}`));
        await client.closed;
        const isWhole = client.received.includes('"allowed":true');
        if (isWhole) {
          const isTold = client.received.toLowerCase().includes('connection: close');
          return isTold || !target.server.isDraining ? 'answered' : 'answered, and not told to go';
        }
        // Of a client that asked as its connection was closed: nothing was read, so it may ask again.
        const isBegun = target.begun.includes(`second-${i}`);
        return isBegun ? `begun and not answered${isReset ? ', reset' : ''}` : 'closed before';
      };
      const asked = clients.map(ask);
      const stopped = target.server.stop(5_000).then(() => (isStopped = true));
      const ends = await Promise.all(asked);
      await stopped;
      expect(ends.filter((end) => end !== 'answered' && end !== 'closed before')).toEqual([]);
      expect(ends).toContain('answered');
      expect(target.incidents).not.toContain('drain_deadline');
    },
  );

  test('HTTP/2 calls in flight end, the client is told to go', async (context) => {
    const target = await start(context);
    const session = http2.connect(target.baseUrl);
    const goaway = new Promise((resolve) => session.on('goaway', resolve));
    const stream = session.request({
      ':path': '/workspace.v1.AuthzService/Check',
      ':method': 'POST',
      'content-type': 'application/json',
    });
    stream.end(JSON.stringify({ object_id: 'wait:200' }));
    let text = '';
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const ended = new Promise((resolve) => stream.on('end', resolve));
    await waitFor(() => target.server.inFlightCount === 1);
    target.server.beginDrain();
    await goaway;
    const stopped = target.server.stop(5_000);
    await ended;
    expect(text).toBe('{"allowed":true}');
    await stopped;
    expect(target.server.connectionCount).toBe(0);
  });

  test('HTTP/2 calls that are on their way when the drain begins, or come to its end, are answered', async (context) => {
    const target = await start(context);
    const ask = (session: http2.ClientHttp2Session): Promise<string> =>
      new Promise((resolve, reject) => {
        const stream = session.request({
          ':path': '/workspace.v1.AuthzService/Check',
          ':method': 'POST',
          'content-type': 'application/json',
        });
        let text = '';
        stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
        stream.on('error', reject);
        stream.on('end', () => resolve(text));
        stream.end(JSON.stringify({ object_id: 'wait:5' }));
      });
    const open = http2.connect(target.baseUrl);
    const farewell = once(open, 'goaway');
    await ask(open);
    target.server.beginDrain();
    // In the same turn: none of them can have read that this is the end.
    const onTheWay = Array.from({ length: 20 }, () => ask(open));
    const late = http2.connect(target.baseUrl);
    const lateFarewell = once(late, 'goaway');
    onTheWay.push(ask(late));
    const allowed = '{"allowed":true}';
    expect(new Set(await Promise.all(onTheWay))).toEqual(new Set([allowed]));
    const [[code, lastStreamId]] = await Promise.all([farewell, lateFarewell]);
    expect([code, lastStreamId]).toEqual([http2.constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1]);

    const last = http2.connect(target.baseUrl);
    await once(last, 'remoteSettings');
    const answer = ask(last);
    await target.server.stop(5_000);
    expect(await answer).toBe(allowed);
    expect(target.incidents).not.toContain('drain_deadline');
  });

  test('the deadline cuts off what does not end', async (context) => {
    const target = await start(context);
    const client = connect(target);
    client.socket.write(rawCheck('wait:20000', 'never-ends'));
    await waitFor(() => target.server.inFlightCount === 1);
    await target.server.stop(50);
    await client.closed;
    expect(target.incidents).toContain('drain_deadline');
    // node:http says so in a later turn.
    await waitFor(() => target.aborted.includes('never-ends'));
  });

  test('stop is idempotent and a second listener gets the port again', async (context) => {
    const target = await start(context);
    await Promise.all([target.server.stop(100), target.server.stop(100)]);
    expect(target.server.connectionCount).toBe(0);
  });
});

describe('many and large', () => {
  const COUNT = byLength(300, 2_000);
  test(`${COUNT} connections at once, each with several requests, leave nothing behind`, async (context) => {
    const target = await start(context);
    const clients = Array.from({ length: COUNT }, () => connect(target));
    for (let round = 1; round <= 3; round++) {
      for (const client of clients) client.socket.write(rawCheck('a'));
      await waitFor(() =>
        clients.every((client) => client.received.split('"allowed":true').length === round + 1),
      );
    }
    expect(target.server.connectionCount).toBe(COUNT);
    for (const client of clients) client.socket.destroy();
    await settled(target);
  }, 120_000);

  /** More than the buffers of a connection hold. */
  const OBJECTS = byLength(1_000_000, 2_000_000);
  test('a large answer waits for a slow reader', async (context) => {
    const target = await start(context);
    const text = JSON.stringify({ namespace: 'd', relation: `n${OBJECTS}`, subject_user_id: 'u' });
    const response = await new Promise<http.IncomingMessage>((resolve) => {
      const request = http.request(
        `${target.baseUrl}/workspace.v1.AuthzService/ListObjects`,
        { method: 'POST', headers: { 'content-type': 'application/json' } },
        resolve,
      );
      request.end(text);
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(target.server.inFlightCount).toBe(1);
    let size = 0;
    for await (const chunk of response) size += (chunk as Buffer).length;
    expect(size).toBe(Number(response.headers['content-length']));
    expect(size).toBeGreaterThan(OBJECTS * 15);
    expect(target.server.inFlightCount).toBe(0);
  });
});
