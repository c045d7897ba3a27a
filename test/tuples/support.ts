import { type Client, createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import * as fc from 'fast-check';
import { TupleService } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import type { Instance } from '../support/instance.ts';

/** Where calls go, and what they carry. */
export type Target = Pick<Instance, 'baseUrl' | 'token'>;

/** A tuple as JSON has it, in one spelling only. */
export type JsonTuple = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject:
    | { readonly user_id: string }
    | { readonly wildcard: true }
    | { readonly wildcard_of: string }
    | {
        readonly set: {
          readonly namespace: string;
          readonly object_id: string;
          readonly relation: string;
        };
      };
  readonly expires_at?: string;
  readonly condition_name?: string;
  readonly condition_params?: Readonly<Record<string, unknown>>;
};

export type Wire = 'connect-json' | 'connect' | 'grpc';

/** A client of TupleService, with its credential. */
export function tuplesOver(target: Target, wire: Wire = 'connect'): Client<typeof TupleService> {
  return createClient(TupleService, transportTo(target, wire));
}

/** A client of AuthzService, with its credential. */
export function authzOver(target: Target, wire: Wire = 'connect'): Client<typeof AuthzService> {
  return createClient(AuthzService, transportTo(target, wire));
}

function transportTo({ baseUrl, token }: Target, wire: Wire): Transport {
  const withToken: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    return next(request);
  };
  const interceptors = [withToken];
  if (wire === 'grpc') return createGrpcTransport({ baseUrl, interceptors });
  const useBinaryFormat = wire === 'connect';
  return createConnectTransport({ baseUrl, httpVersion: '2', useBinaryFormat, interceptors });
}

/** POST /v1/tuples:import. */
export async function postLines(
  { baseUrl, token }: Target,
  query: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const response = await fetch(`${baseUrl}/v1/tuples:import${query}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/x-ndjson',
      ...headers,
    },
    body,
    duplex: 'half',
  });
  const text = await response.text();
  const parsed = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  return { status: response.status, body: parsed };
}

/** GET /v1/tuples. */
export async function getLines(
  { baseUrl, token }: Target,
  query: string,
): Promise<{ readonly status: number; readonly lines: readonly Record<string, unknown>[] }> {
  const response = await fetch(`${baseUrl}/v1/tuples${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const text = await response.text();
  const lines = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { status: response.status, lines };
}

export function linesOf(tuples: readonly JsonTuple[]): string {
  return tuples.map((tuple) => `${JSON.stringify(tuple)}\n`).join('');
}

/** Tuples of an export, which must have ended well. */
export async function exported(target: Target, query: string): Promise<readonly JsonTuple[]> {
  const { status, lines } = await getLines(target, query);
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(lines)}`);
  if (lines.at(-1)?.['end'] !== true) throw new Error(`cut short: ${JSON.stringify(lines.at(-1))}`);
  return lines.flatMap((line) => ('tuple' in line ? [line['tuple'] as JsonTuple] : []));
}

/** What identifies a tuple, as text. */
export function identityOf({ namespace, object_id, relation, subject }: JsonTuple): string {
  return JSON.stringify([namespace, object_id, relation, subject]);
}

/** The whole tuple as text that does not depend on the order of members. */
export function textOf(tuple: JsonTuple): string {
  return JSON.stringify([
    identityOf(tuple),
    tuple.expires_at ?? null,
    tuple.condition_name ?? null,
    tuple.condition_params ?? null,
  ]);
}

/** What is stored after these were written in order; sorted. */
export function setOf(...writes: readonly (readonly JsonTuple[])[]): readonly string[] {
  const stored = new Map<string, JsonTuple>();
  for (const tuple of writes.flat()) stored.set(identityOf(tuple), tuple);
  return [...stored.values()].map(textOf).toSorted();
}

const id = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f') },
  {
    weight: 1,
    arbitrary: fc
      .string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
      // oxlint-disable-next-line no-control-regex -- what ids must not hold
      .filter((text) => !/[\u0000-\u001f\u007f-\u009f#]/.test(text) && text.isWellFormed()),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('back\\slash', 'quo"te', "apo'strophe", '\\N', '\\.', '🜁'),
  },
);
const name = fc.constantFrom('doc', 'folder', 'team');
const relation = fc.constantFrom('viewer', 'owner', 'member');

const subject: fc.Arbitrary<JsonTuple['subject']> = fc.oneof(
  { weight: 4, arbitrary: id.map((user_id) => ({ user_id })) },
  { weight: 1, arbitrary: fc.constant({ wildcard: true as const }) },
  { weight: 1, arbitrary: name.map((wildcard_of) => ({ wildcard_of })) },
  {
    weight: 2,
    arbitrary: fc
      .record({ namespace: name, object_id: id, relation: fc.oneof(relation, fc.constant('')) })
      .map((set) => ({ set })),
  },
);

const metadata = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('2031-01-01T00:00:00Z', '1969-12-31T23:59:59.5Z')
      .map((expires_at) => ({
        expires_at: expires_at.replace('.5Z', '.500Z'),
      })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('scope_in', 'tab\there', 'new\nline').map((condition_name) => ({
      condition_name,
      condition_params: { scopes: ['\\', '\n'], '\u2028': 'x' },
    })),
  },
  { weight: 1, arbitrary: fc.constant({ condition_name: 'consent_granted' }) },
);

/** Any tuple; identities repeat often. */
export const anyTuple: fc.Arbitrary<JsonTuple> = fc
  .tuple(fc.record({ namespace: name, object_id: id, relation, subject }), metadata)
  .map(([key, rest]) => ({ ...key, ...rest }));

/** `count` different plain tuples, the n-th of which is always the same. */
export function plainTuples(count: number, from = 0): JsonTuple[] {
  return Array.from({ length: count }, (_, i) => ({
    namespace: 'doc',
    object_id: `d${(from + i) % 997}`,
    relation: 'viewer',
    subject: { user_id: `user-${from + i}` },
  }));
}
