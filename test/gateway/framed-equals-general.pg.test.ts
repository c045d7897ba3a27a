import http2 from 'node:http2';
import { gzipSync } from 'node:zlib';
import {
  create,
  type DescMessage,
  type JsonObject,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
  ListObjectsRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { callHttp2, envelope } from '../support/http2-calls.ts';
import { instanceForFile } from '../support/instance.ts';
import { NARROW_CALLERS, NARROW_TOKEN } from '../support/narrow-caller.ts';
import { call } from '../support/service.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';

/*
 * Over HTTP/2, and as gRPC-Web over HTTP/1.1, the hot path never differs from the general one: the same calls go down both, valid and
 * broken, framed in every way, and what comes back is compared to the byte. `npm run fuzz:framed` sends 102,000 bodies (FUZZ_RUNS=85).
 */
const instances = {
  alone: (await instanceForFile(NARROW_CALLERS)).instance,
  'beside others': (await instanceForFile(NARROW_CALLERS, () => false)).instance,
};
const METHODS = ['Check', 'BatchCheck', 'ListObjects'] as const;
type Method = (typeof METHODS)[number];
const SCHEMAS: Readonly<Record<Method, DescMessage>> = {
  Check: CheckRequestSchema,
  BatchCheck: BatchCheckRequestSchema,
  ListObjects: ListObjectsRequestSchema,
};
const CARRIERS = ['gRPC', 'gRPC-Web over HTTP/2', 'gRPC-Web over HTTP/1.1', 'Connect'] as const;
type Carrier = (typeof CARRIERS)[number];
const RUNS = Math.ceil(byLength(7, 50) * Number(process.env['FUZZ_RUNS'] ?? 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

/** 64 MiB of zeros, packed once. */
let bomb: Buffer | undefined;

type Sent = {
  readonly method: Method;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Where the body is cut into frames, from 0 to below 1. */
  readonly cuts: readonly number[];
};

describe.each(['alone', 'beside others'] as const)(
  `framed hot path == general path, %s (SEED=${seed})`,
  (mode) => {
    const instance = instances[mode];
    const sessions: http2.ClientHttp2Session[] = [];
    let tokens: readonly string[] = [];

    beforeAll(async () => {
      tokens = [await write(''), await write('t1')];
      await call(instance, 'AdminService/CreateProject', { id: 'sleeping', name: 'sleeping' });
      const suspended = { id: 'sleeping', status: 'PROJECT_STATUS_SUSPENDED' };
      await call(instance, 'AdminService/UpdateProject', suspended);
    });

    afterAll(() => {
      for (const session of sessions) session.close();
    });

    async function write(tenantId: string): Promise<string> {
      // Enough objects for a list that is compressed.
      const updates = Array.from({ length: 150 }, (_, i) => ({
        op: 'OP_INSERT',
        tuple: {
          namespace: 'resource',
          object_id: `d${i}`,
          relation: 'viewer',
          subject: { user_id: i % 3 === 2 ? 'zoë' : 'alice' },
          ...(i === 1 ? { condition_name: 'age_at_least', condition_params: { min_age: 18 } } : {}),
        },
      }));
      const answer = await call(instance, 'AuthzService/WriteRelationTuples', {
        updates,
        tenant_id: tenantId,
      });
      return String(answer.body['consistency_token']);
    }

    /** Made when it is needed: the service closes one that was idle while the tests of others ran. */
    function sessionTo(index: 0 | 1): http2.ClientHttp2Session {
      let session = sessions[index];
      if (session === undefined || session.closed || session.destroyed) {
        session = http2.connect(index === 0 ? instance.baseUrl : instance.generalUrl);
        sessions[index] = session;
      }
      return session;
    }

    async function send(index: 0 | 1, carrier: Carrier, sent: Sent): Promise<object> {
      const path = `/workspace.v1.AuthzService/${sent.method}`;
      const headers = {
        authorization: `Bearer ${instance.token}`,
        'x-request-id': 'the-same',
        ...sent.headers,
      };
      if (carrier !== 'gRPC-Web over HTTP/1.1') {
        const session = sessionTo(index);
        const { body, ...rest } = await callHttp2(session, path, headers, partsOf(sent));
        return { ...rest, body: body.toString('latin1') };
      }
      const baseUrl = index === 0 ? instance.baseUrl : instance.generalUrl;
      const { body } = sent;
      const response = await fetch(`${baseUrl}${path}`, { method: 'POST', headers, body });
      const fields = Object.fromEntries(response.headers);
      delete fields['date'];
      const text = Buffer.from(await response.arrayBuffer()).toString('latin1');
      return { status: response.status, fields, body: text };
    }

    /** grpc-status, or the HTTP status where there is none. A caller that reaches one tenant alone learns nothing of others. */
    async function expectSame(carrier: Carrier, sent: Sent, isOutOfReach = false): Promise<string> {
      const authorization = `Bearer ${NARROW_TOKEN}`;
      const narrow = { ...sent, headers: { authorization, ...sent.headers } };
      const [hot, general, hotNarrow, generalNarrow] = await Promise.all([
        send(0, carrier, sent),
        send(1, carrier, sent),
        send(0, carrier, narrow),
        send(1, carrier, narrow),
      ]);
      expect(hotNarrow, `${carrier}, narrow: ${sent.body.toString('hex')}`).toEqual(generalNarrow);
      expect(
        hot,
        `${carrier} ${sent.method} ${JSON.stringify(sent.headers)} ${sent.body.toString('hex')}`,
      ).toEqual(general);
      if (isOutOfReach) expect(['0', '200']).not.toContain(statusOf(hotNarrow));
      return statusOf(general);
    }

    function statusOf(answer: object): string {
      const { status, fields, body } = answer as {
        status: number;
        fields: Record<string, string>;
        body: string;
      };
      return fields['grpc-status'] ?? /grpc-status: (\d+)/.exec(body)?.[1] ?? String(status);
    }

    const name = fc.constantFrom('resource', 'viewer', 'viewer', 'group', '', 'x y', '\u0000');
    const id = fc.constantFrom('d1', 'd2', 'alice', 'zoë', '', '#', 'x'.repeat(257), '漢字');
    const good = fc.record({
      namespace: fc.constant('resource'),
      objectId: fc.constantFrom('d1', 'd2'),
      relation: fc.constantFrom('viewer', 'editor'),
      subjectUserId: fc.constantFrom('alice', 'zoë', 'bob'),
    });
    /** Of a Check; mostly none, and only what can be said in either format. */
    const contexts = fc.constantFrom<JsonObject | undefined>(
      undefined,
      undefined,
      {},
      { age: 30 },
      { age: 17 },
      { age: '30' },
      { age: 18.5, b: { z: 1, a: [null, 'zoë'] } },
      { a: { a: { a: { a: { a: {} } } } } },
      { a: '"' },
    );
    const item = fc.oneof(
      { weight: 3, arbitrary: good },
      fc.record({ namespace: name, objectId: id, relation: name, subjectUserId: id }),
    );
    const scope = fc.record(
      {
        projectId: fc.constantFrom('', 'default', 'nobody', 'sleeping', 'BAD ID'),
        tenantId: fc.constantFrom('', 't1', 'unknown', 'bad tenant', 'x'.repeat(129)),
        token: fc.nat(4),
      },
      { requiredKeys: [] },
    );
    const framing = fc.record({
      isJson: fc.boolean(),
      gzip: fc.constantFrom('no', 'no', 'yes', 'named', 'broken'),
      accept: fc.constantFrom('', '', 'gzip', 'identity,gzip', 'br', 'gzip;q=1'),
      // None that may pass meanwhile: then the two end at different points of the way.
      timeout: fc.constantFrom('', '', '10S', '30000m', '1H', '99999999H', 'x', '10', '-1S'),
      damage: fc.constantFrom(
        '',
        '',
        '',
        '',
        'cut',
        'append',
        'flip',
        'twice',
        'none',
        'flag',
        'length',
      ),
      at: fc.nat(),
      byte: fc.nat(255),
      cuts: fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { maxLength: 3 }),
      type: fc.constantFrom('', '', '', '', '', 'upper', 'charset', 'other'),
    });

    test.each(CARRIERS.flatMap((carrier) => METHODS.map((method) => [carrier, method] as const)))(
      '%s, %s',
      async (carrier, method) => {
        const seen = new Set<string>();
        await fc.assert(
          fc.asyncProperty(
            scope,
            fc.array(item, { minLength: 1, maxLength: 40, size: 'max' }),
            framing,
            contexts,
            async ({ token, ...where }, items, how, context) => {
              const first = items[0] as object;
              const { objectId: _objectId, ...ofList } = first as { objectId: string };
              const rest =
                method === 'BatchCheck'
                  ? { items }
                  : method === 'Check'
                    ? { ...first, ...(context === undefined ? {} : { context }) }
                    : ofList;
              const atLeastConsistencyToken =
                token === undefined
                  ? {}
                  : {
                      atLeastConsistencyToken: [
                        '',
                        'garbage',
                        tokens[0],
                        tokens[1],
                        `${tokens[0]}x`,
                      ][token],
                    };
              const message = create(SCHEMAS[method], {
                ...where,
                ...rest,
                ...atLeastConsistencyToken,
              });
              const bytes = how.isJson
                ? Buffer.from(toJsonString(SCHEMAS[method], message))
                : Buffer.from(toBinary(SCHEMAS[method], message));
              const { projectId = '', tenantId = '' } = where;
              const isElsewhere = tenantId !== '' || !['', 'default'].includes(projectId);
              const sent = framed(carrier, method, bytes, how);
              const status = await expectSame(carrier, sent, isElsewhere && how.damage === '');
              expect(
                status,
                'no request is an internal error but for what gRPC calls one',
              ).not.toBe('500');
              seen.add(status);
            },
          ),
          { numRuns: RUNS, seed },
        );
        expect(seen.size, 'some calls are answered, and some are refused').toBeGreaterThan(1);
      },
      600_000,
    );

    // Where instances are alone or not makes no difference to these.
    const once = mode === 'alone' ? inShort(test) : inLong(test);
    once.each(CARRIERS)('%s: limits, credentials and empty bodies', async (carrier) => {
      const type = contentTypeOf(carrier, false);
      for (const method of METHODS) {
        const sent = { method, headers: { 'content-type': type }, cuts: [] };
        await expectSame(carrier, { ...sent, body: Buffer.alloc(0) });
        await expectSame(carrier, { ...sent, body: envelope(0, Buffer.alloc(0)) });
        await expectSame(carrier, { ...sent, body: envelope(1, Buffer.alloc(0)) });
        const refused = { ...sent.headers, authorization: 'Bearer wrong' };
        await expectSame(carrier, {
          ...sent,
          headers: refused,
          body: envelope(0, Buffer.alloc(0)),
        });
        const encoding = { [carrier === 'Connect' ? 'content-encoding' : 'grpc-encoding']: 'gzip' };
        bomb ??= gzipSync(Buffer.alloc(64 * 1024 * 1024));
        const body = carrier === 'Connect' ? bomb : envelope(1, bomb);
        await expectSame(carrier, { ...sent, headers: { ...sent.headers, ...encoding }, body });
      }
      const large = Buffer.alloc(8 * 1024 * 1024 + 1, 0x20);
      const body = carrier === 'Connect' ? large : envelope(0, large);
      const headers = { 'content-type': type };
      await expectSame(carrier, { method: 'Check', headers, body, cuts: [] });
    });
  },
);

function contentTypeOf(carrier: Carrier, isJson: boolean): string {
  const format = isJson ? 'json' : 'proto';
  if (carrier === 'Connect') return `application/${format}`;
  return `application/${carrier === 'gRPC' ? 'grpc' : 'grpc-web'}+${format}`;
}

function framed(
  carrier: Carrier,
  method: Method,
  message: Buffer,
  how: {
    readonly isJson: boolean;
    readonly gzip: string;
    readonly accept: string;
    readonly timeout: string;
    readonly damage: string;
    readonly at: number;
    readonly byte: number;
    readonly cuts: readonly number[];
    readonly type: string;
  },
): Sent {
  const isConnect = carrier === 'Connect';
  let type = contentTypeOf(carrier, how.isJson);
  if (how.type === 'upper') type = type.replace('application', 'Application');
  if (how.type === 'charset') type += '; charset=utf-8';
  if (how.type === 'other') type = type.replace(/[+]?(json|proto)$/, '');
  const headers: Record<string, string> = { 'content-type': type };
  const isGzip = how.gzip === 'yes' || how.gzip === 'broken';
  if (how.gzip !== 'no') {
    headers[isConnect ? 'content-encoding' : 'grpc-encoding'] = isGzip ? 'gzip' : 'identity';
  }
  if (how.accept !== '')
    headers[isConnect ? 'accept-encoding' : 'grpc-accept-encoding'] = how.accept;
  else if (carrier === 'Connect') headers['accept-encoding'] = '';
  const timeout = isConnect
    ? how.timeout.replace(/^10$/, 'ten').replace(/[A-Z]$/i, '0000')
    : how.timeout;
  if (how.timeout !== '') headers[isConnect ? 'connect-timeout-ms' : 'grpc-timeout'] = timeout;
  let bytes = isGzip ? gzipSync(message) : message;
  if (how.gzip === 'broken') bytes = bytes.subarray(0, bytes.length >> 1);
  let body = isConnect ? bytes : envelope(isGzip ? 1 : 0, bytes);
  if (how.damage === 'cut') body = body.subarray(0, how.at % (body.length + 1));
  if (how.damage === 'append') body = Buffer.concat([body, Uint8Array.of(how.byte)]);
  if (how.damage === 'flip' && body.length > 5) {
    body = Buffer.from(body);
    body[5 + (how.at % (body.length - 5))] = how.byte;
  }
  if (how.damage === 'twice') body = Buffer.concat([body, body]);
  if (how.damage === 'none') body = Buffer.alloc(0);
  if (how.damage === 'flag' && !isConnect) body[0] = how.byte;
  if (how.damage === 'length' && !isConnect) body[4] = how.byte;
  return { method, headers, body, cuts: how.cuts };
}

function partsOf({ body, cuts }: Sent): readonly Buffer[] {
  const ends = [
    ...cuts.map((cut) => Math.floor(cut * body.length)).toSorted((a, b) => a - b),
    body.length,
  ];
  return ends.map((end, i) => body.subarray(ends[i - 1] ?? 0, end));
}
