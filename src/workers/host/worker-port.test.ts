import { EventEmitter } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import type {
  AnswerBatch,
  RequestBatch,
  WorkerMessage,
  WorkerReply,
} from '../../protocol/messages.ts';
import { RequestPacker, unpackAnswers } from '../../protocol/packed-batch.ts';
import { postAnswers, serveBatches } from './worker-port.ts';

const noAnswers: AnswerBatch = {
  ids: new Float64Array(0),
  kinds: new Uint8Array(0),
  bodies: new Uint8Array(0),
  bodyEnds: new Uint32Array(0),
  largeBodies: [],
  responses: [],
  acks: [],
  modelsWanted: [],
  stats: null,
  reports: [],
  refusals: [],
};

const batchOf = (bodies: string): RequestBatch => ({
  scopes: [],
  tokens: [''],
  raw: new Float64Array(0),
  bodies: Buffer.from(bodies),
  requests: [],
  cancelled: [],
  control: [],
});

/** Messages that arrive at the gateway's side, as it reads them. */
function start() {
  const { port1: gateway, port2: worker } = new MessageChannel();
  onTestFinished(() => gateway.close());
  const replies: WorkerReply[] = [];
  gateway.on('message', (reply: WorkerReply) => replies.push(reply));
  const read = (at: number) => {
    const reply = replies[at];
    return reply instanceof ArrayBuffer ? unpackAnswers(reply) : reply;
  };
  return { gateway, worker, replies, read };
}

test('short answers travel packed, all others as they are, and are not those that are used again', async () => {
  const { worker, replies, read } = start();
  const bodies = Uint8Array.from(Buffer.from('abc'));
  const short = { ...noAnswers, ids: Float64Array.of(7), kinds: Uint8Array.of(2), bodies };
  postAnswers(worker, 3, { ...short, bodyEnds: Uint32Array.of(3) });
  const large = new Uint8Array(100_000).fill(9);
  postAnswers(worker, 0, { ...short, largeBodies: [large], acks: [{ ackId: 5 }] });
  short.ids[0] = 99;
  bodies.fill(0);
  await expect.poll(() => replies.length).toBe(2);
  expect(replies.map((reply) => reply instanceof ArrayBuffer)).toEqual([true, false]);
  expect(read(0)).toMatchObject({ batch: 3, content: { ids: Float64Array.of(7) } });
  expect(read(1)).toMatchObject({ batch: 0, content: { acks: [{ ackId: 5 }] } });
  expect(read(1)?.content.ids).toEqual(Float64Array.of(7));
  expect(read(1)?.content.largeBodies[0]).toEqual(new Uint8Array(100_000).fill(9));
  for (const at of [0, 1]) {
    expect(Buffer.from(read(at)?.content.bodies ?? []).toString()).toBe('abc');
  }
  // Handed over, not copied.
  expect(large.byteLength).toBe(0);
});

test('batches are answered under their numbers, however they come', async () => {
  const { gateway, worker, replies, read } = start();
  const handled: string[] = [];
  serveBatches(worker, (batch) => {
    handled.push(Buffer.from(batch.bodies).toString());
    return { ...noAnswers, ids: Float64Array.of(handled.length), kinds: Uint8Array.of(1) };
  });
  const packer = new RequestPacker();
  const send = (message: WorkerMessage): void => gateway.postMessage(message, []);
  send({ batch: 11, content: batchOf('plain') });
  send(packer.pack(12, batchOf('packed')) as ArrayBuffer);
  const packed = new Uint8Array(packer.pack(13, batchOf('shared')) as ArrayBuffer);
  const buffer = new SharedArrayBuffer(packed.length);
  new Uint8Array(buffer).set(packed);
  send({ memory: 0, buffer: new SharedArrayBuffer(64) });
  send({ memory: 1, buffer });
  send(1);
  await expect.poll(() => replies.length).toBe(3);
  expect(handled).toEqual(['plain', 'packed', 'shared']);
  expect([0, 1, 2].map((at) => [read(at)?.batch, read(at)?.content.ids[0]])).toEqual([
    [11, 1],
    [12, 2],
    [13, 3],
  ]);
});

test('a batch in memory that was not announced ends the thread', () => {
  const port = new EventEmitter();
  serveBatches(port as unknown as MessagePort, () => noAnswers);
  expect(() => port.emit('message', 4)).toThrow('announced');
});
