import http2 from 'node:http2';
import { expect, onTestFinished, test } from 'vitest';
import { callersOf } from '../../../test/support/callers.ts';
import { BodyBudget } from '../../http/bodies/body-budget.ts';
import { UNREAD_BYTES_MAX, UnreadAnswers } from '../../http/exchange/unread-answers.ts';
import { createHttpServer } from '../../http/listener/http-server.ts';
import type { ReadScope, ShardClient } from '../../protocol/shard-client.ts';
import { DecisionReader } from './decision-reader.ts';
import { FramedDecisions } from './framed-decisions.ts';

const LIST_BYTES = 1_048_576;
const LISTS = 100;
const PATH = '/workspace.v1.AuthzService/ListObjects';

/** A listener whose workers answer each list with a mebibyte at once. */
async function serve(): Promise<{
  readonly baseUrl: string;
  readonly incidents: string[];
  readonly unread: number[];
}> {
  const incidents: string[] = [];
  const unread: number[] = [];
  const unexpected = (): never => {
    throw new Error('nothing here is for the general path');
  };
  const scope: ReadScope = {
    projectId: 'p',
    tenantId: '',
    modelVersion: 1,
    readBudget: 1,
    settingsVersion: 1,
    epoch: 1,
    minRevision: 0,
    forkId: '',
    isHeldOnly: false,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
  const raw: ShardClient['raw'] = (_method, _format, _body, _scope, _expected, onAnswer) => {
    setImmediate(() => onAnswer({ kind: 'body', body: new Uint8Array(LIST_BYTES) }));
    return { cancel: () => undefined };
  };
  const framed = new FramedDecisions({
    callers: callersOf(),
    shards: { raw },
    scopes: {
      peek: () => scope,
      enqueue: () => null,
      settled: () => Promise.resolve(),
      isMoved: () => false,
      projectIdOf: (projectId: string) => projectId,
      tokenOf: () => '',
    },
    versions: { peek: () => undefined },
    meter: { ended: () => undefined, failed: () => undefined },
    general: { handleHttp2: unexpected, handleBufferedStream: unexpected },
    bodyBytesMax: 1_000_000,
    bodyBudget: new BodyBudget(),
    reader: new DecisionReader({}),
    compressMinBytes: 1_024,
    timeoutMsMax: 30_000,
    unread: new UnreadAnswers({
      bytesMax: UNREAD_BYTES_MAX,
      stallMs: 60_000,
      onDropped: (bytes, isStalled) => {
        incidents.push(isStalled ? 'answer_stalled' : 'answer_unread');
        unread.push(bytes);
      },
    }),
  });
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    http2: {
      onStream: (stream, headers, deadlines) => framed.handleStream(stream, headers, deadlines),
    },
  });
  const { port } = await server.listen();
  onTestFinished(() => server.stop(0));
  return { baseUrl: `http://127.0.0.1:${port}`, incidents, unread };
}

function askForList(session: http2.ClientHttp2Session): http2.ClientHttp2Stream {
  const headers = { ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc' };
  const stream = session.request(headers);
  stream.on('error', () => undefined);
  stream.on('data', () => undefined);
  stream.end(Buffer.alloc(5));
  return stream;
}

test('of 100 lists that nobody reads the oldest are reset, and others are served', async () => {
  const { baseUrl, incidents, unread } = await serve();
  // Windows that never open.
  const deaf = http2.connect(baseUrl, { settings: { initialWindowSize: 0 } });
  deaf.on('error', () => undefined);
  onTestFinished(() => deaf.destroy());
  await new Promise((resolve) => deaf.once('localSettings', resolve));
  const codes: number[] = [];
  const streams = Array.from({ length: LISTS }, () => askForList(deaf));
  for (const stream of streams) stream.on('close', () => codes.push(stream.rstCode));
  // 64 MiB may wait, envelopes included.
  const resetCount = LISTS - 63;
  while (codes.length < resetCount) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(new Set(codes)).toEqual(new Set([http2.constants.NGHTTP2_ENHANCE_YOUR_CALM]));
  expect(incidents).toEqual(Array.from({ length: resetCount }, () => 'answer_unread'));
  expect(unread, 'each is counted with its envelope').toEqual(
    Array.from({ length: resetCount }, () => LIST_BYTES + 5),
  );
  expect(streams.slice(0, resetCount).every((stream) => stream.closed)).toBe(true);

  const session = http2.connect(baseUrl);
  onTestFinished(() => session.destroy());
  const stream = askForList(session);
  let received = 0;
  stream.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  const trailers = await new Promise<http2.IncomingHttpHeaders>((resolve) =>
    stream.on('trailers', resolve),
  );
  expect(trailers['grpc-status']).toBe('0');
  expect(received).toBe(LIST_BYTES + 5);
});
