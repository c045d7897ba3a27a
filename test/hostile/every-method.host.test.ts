import http2 from 'node:http2';
import type { DescField, DescMessage, DescMethod } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SERVICES } from '../../src/gateway/call-handlers.ts';
import { type Service, startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import { printToll, STALL_MS_MAX, tollOf } from './toll.ts';

/*
 * The worst bodies that a caller can send to any method, by every way in. A sample of the methods, another one each time, by a seed that is
 * printed; HOSTILE_ALL=1 takes all of them, HOSTILE_SEED=n the sample of that seed.
 */
const SAMPLE = byLength(2, 12);
const seed = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 1_000_000);
const BODY_BYTES = 7 * 1_048_576;
const methods = SERVICES.flatMap(({ methods: all }) => all);
const [sampled = methods] = fc.sample(
  fc.shuffledSubarray(methods, { minLength: SAMPLE, maxLength: SAMPLE }),
  {
    seed,
    numRuns: 1,
  },
);
const chosen = process.env['HOSTILE_ALL'] === '1' ? methods : sampled;

let service: Service;
beforeAll(async () => {
  process.stdout.write(`hostile: methods by the seed ${seed}\n`);
  service = await startService({ postgres: 'shared' });
});
afterAll(() => service.stop());

const unknownKeys = `{${Array.from({ length: 500_000 }, (_, i) => `"k${i}":{}`).join(',')}}`;
/** Field 1023, which no message has, with nothing in it. */
const unknownFields = Buffer.from('fa3f00'.repeat(Math.floor(BODY_BYTES / 3)), 'hex');

/** As many items as a body has room for, in the first list that the message reaches. */
function itemsOf(message: DescMessage, depth = 0): string | undefined {
  const { fields } = message;
  const list = fields.find(({ fieldKind }) => fieldKind === 'list');
  if (list !== undefined) {
    const item = list.fieldKind === 'list' && list.listKind === 'message' ? '{}' : '""';
    const count = Math.floor(BODY_BYTES / (item.length + 1));
    return `{"${list.jsonName}":[${`${item},`.repeat(count - 1)}${item}]}`;
  }
  if (depth === 3) return undefined;
  for (const field of fields) {
    const inner = itemsWithin(field, depth);
    if (inner !== undefined) return `{"${field.jsonName}":${inner}}`;
  }
  return undefined;
}

function itemsWithin(field: DescField, depth: number): string | undefined {
  if (field.fieldKind !== 'message') return undefined;
  const { message } = field;
  if (message.typeName !== 'google.protobuf.Struct') return itemsOf(message, depth + 1);
  return `{${Array.from({ length: 300_000 }, (_, i) => `"k${i}":0`).join(',')}}`;
}

/** The status of HTTP, or of gRPC as it is. */
async function send(method: DescMethod, type: string, body: Uint8Array): Promise<number> {
  const isUnary = method.methodKind === 'unary';
  const isJson = type === 'json';
  const contentType = isJson ? (isUnary ? 'application/json' : 'application/connect+json') : type;
  const session = http2.connect(service.baseUrl);
  try {
    return await new Promise<number>((resolve, reject) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': `/${method.parent.typeName}/${method.name}`,
        'content-type': contentType,
        authorization: `Bearer ${service.token}`,
        'x-admin-secret': service.adminSecret,
      });
      let status = 0;
      const look = (fields: http2.IncomingHttpHeaders): void => {
        status = Number(fields['grpc-status'] ?? fields[':status'] ?? status);
      };
      session.once('error', reject);
      stream.once('error', reject);
      stream.on('response', look);
      stream.on('trailers', look);
      stream.once('close', () => resolve(status));
      stream.resume();
      stream.end(isJson && isUnary ? body : enveloped(body));
    });
  } finally {
    session.destroy();
  }
}

function enveloped(message: Uint8Array): Uint8Array {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

test.each(chosen.map((method) => [`${method.parent.typeName}/${method.name}`, method] as const))(
  '%s',
  async (name, method) => {
    const items = itemsOf(method.input);
    const bodies: readonly (readonly [string, Uint8Array])[] = [
      ['json', Buffer.from(unknownKeys)],
      ['application/grpc', unknownFields],
      ['application/grpc-web+proto', unknownFields],
      ...(items === undefined ? [] : [['json', Buffer.from(items)] as const]),
    ];
    const { pid, metricsUrl } = service;
    const statuses: number[] = [];
    const toll = await tollOf({ pid, healthUrl: `${metricsUrl}/healthz` }, async () => {
      await Promise.all(
        bodies.map(async ([type, body]) => statuses.push(await send(method, type, body))),
      );
    });
    printToll(`${name}: ${bodies.length} large bodies`, toll);
    // Answered, and not with a failure of ours: 13 is INTERNAL of gRPC.
    for (const status of statuses) expect([0, 13, 500]).not.toContain(status);
    expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
    expect(toll.grownBytes).toBeLessThan(256 * 1_048_576);
  },
);
