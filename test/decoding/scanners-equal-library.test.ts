/* What the scanners of the hot path read from a body is what protobuf's own reader reads from it, body by random body. */
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { MessageDecoder } from '../../src/decoding/message-decoder.ts';
import { scanJsonScope } from '../../src/gateway/hot/scan/json-scope.ts';
import { scanProtoScope, type ScopeFieldNumbers } from '../../src/gateway/hot/scan/proto-scope.ts';
import { createScopeScan, SCOPE_VALUE_LENGTH_MAX } from '../../src/gateway/hot/scan/scope-scan.ts';
import { scanWrite } from '../../src/gateway/hot/scan/write-scan.ts';
import {
  checkNamespace,
  checkObjectId,
  checkRelation,
  checkUserId,
} from '../../src/model/names.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { JsonScanner } from '../../src/workers/raw/json-scanner.ts';
import { ProtoScanner } from '../../src/workers/raw/proto-scanner.ts';
import { rawContextOf } from '../../src/workers/raw/raw-context.ts';
import { createRawFields, POSITIONS_PER_ITEM } from '../../src/workers/raw/raw-fields.ts';
import { byLength } from '../support/test-length.ts';
import {
  contextOf,
  hasMore,
  holdsObject,
  itemsOf,
  libraryReading,
  type Request,
  SCHEMAS,
  runsOn,
  type Scope,
  scopeOf,
  updatesOf,
} from './library-readings.ts';
import { type RandomBody, randomBody } from './random-bodies.ts';
import type { Method } from './random-fields.ts';

/** Of each request in each form; those of a Check hold most that may be odd. */
const BODIES: Readonly<Record<Method, number>> = {
  check: 2_500,
  batchCheck: 900,
  listObjects: 700,
  write: 1_200,
};
const TIMES = byLength(1, 100) * Number(process.env['FUZZ_RUNS'] ?? 1);
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000_000);
process.stdout.write(`scanners-equal-library: SEED=${SEED}\n`);

/** Bodies between two turns of the loop, so that a long run answers its runner. */
const BODIES_PER_TURN = 10_000;
/** Bodies of which one goes to the decoder. */
const BODIES_PER_DECODED = 20;

/** Bytes from which on a batch is one for slices. */
const LONG_BYTES = 8_000;

type Scanners = {
  readonly itemsMax: number;
  readonly json: JsonScanner;
  readonly proto: ProtoScanner;
};

/** What was compared, to see that it was much. */
type Tally = {
  accepted: number;
  refused: number;
  scoped: number;
  scanned: number;
  paused: number;
  contexts: number;
  decoded: number;
  /** Messages that run past their own ends, whose scope only who reads all of them knows. */
  excluded: number;
};

class Differs extends Error {}

/** Everything is scanned and built in slices, however small. */
const decoder = new MessageDecoder(
  {},
  { unscannedBytesMax: 0, scannedAtOnceBytesMax: 0, decodedAtOnceValuesMax: 0 },
);
const fields = createRawFields();
/** They read one body after another, as in a worker. */
const [FEW, MANY] = [3, 540].map((itemsMax) => ({
  itemsMax,
  json: new JsonScanner(fields, itemsMax),
  proto: new ProtoScanner(fields, itemsMax),
})) as [Scanners, Scanners];
const scope = createScopeScan();
const NUMBERS = Object.fromEntries(
  Object.entries(SCHEMAS).map(([method, { fields: all }]) => {
    const numberOf = (localName: string): number =>
      all.find((field) => field.localName === localName)?.number ?? -1;
    const token = numberOf('atLeastConsistencyToken');
    const [projectId, tenantId] = [numberOf('projectId'), numberOf('tenantId')];
    return [method, { projectId, tenantId, token, subjectSet: numberOf('subjectSet') }];
  }),
) as Record<Method, ScopeFieldNumbers>;

function mustEqual(what: string, found: unknown, wanted: unknown): void {
  if (isDeepStrictEqual(found, wanted)) return;
  throw new Differs(`${what}: ${JSON.stringify(found)}, by the library ${JSON.stringify(wanted)}`);
}

/**
 * Whether it was scanned. From each body that the library takes the scan reads the same, or a value is too long for it, or it has
 * fields that nobody knows.
 */
function compareScope(
  view: Buffer,
  method: Method,
  isJson: boolean,
  read: Request | null,
  tally: Tally,
): boolean {
  const isScanned = isJson
    ? scanJsonScope(view, scope)
    : scanProtoScope(view, NUMBERS[method], scope);
  if (read === null) return false;
  const wanted = scopeOf(read);
  if (!isJson && runsOn(SCHEMAS[method], view)) {
    mustEqual('a message that runs past its end', isDecoded(method, view), false);
    tally.excluded += 1;
  } else if (isScanned) {
    const { projectId, tenantId, token } = scope;
    mustEqual('the scope', { projectId, tenantId, token }, wanted);
    const asksForSet = 'subjectSet' in read && read.subjectSet !== undefined;
    if (asksForSet) mustEqual('whether it asks for a userset', scope.namesSet, true);
  } else if (
    Object.values(wanted).every((value) => Buffer.byteLength(value) <= SCOPE_VALUE_LENGTH_MAX)
  ) {
    // The last of several counts, the others may be too long.
    const isKnown = isJson ? view.length <= 65_536 : read.$unknown === undefined;
    if (isKnown && (isJson || view.length <= SCOPE_VALUE_LENGTH_MAX))
      throw new Differs('no scope was scanned');
  }
  return isScanned;
}

/** Whether a binary message is decoded where it is not plain. */
function isDecoded(method: Method, view: Buffer): boolean {
  try {
    const begun = decoder.begin(SCHEMAS[method], true, view);
    if ('next' in begun) while (begun.next().done !== true);
    return true;
  } catch {
    return false;
  }
}

/** What a scanner left in its fields, all of it as text. */
function foundIn(around: Buffer): { scope: Scope; items: string[][]; context: string | null } {
  const text = (start: number | undefined, end: number | undefined): string =>
    around.toString('utf8', start, end);
  const [a, b, c, d, e, f] = fields.scope;
  const items = Array.from({ length: fields.itemCount }, (_, item) =>
    [0, 2, 4, 6].map((at) => {
      const position = item * POSITIONS_PER_ITEM + at;
      return text(fields.items[position], fields.items[position + 1]);
    }),
  );
  const context = rawContextOf(fields, { bytes: around });
  if (context !== null) {
    const value = context.value();
    const ordered: unknown = JSON.parse(context.json);
    mustEqual('the value of the context', value, ordered);
    if (Object.values(value).some(holdsObject)) {
      mustEqual('the order of members', JSON.stringify(value), JSON.stringify(ordered));
    }
  }
  return {
    scope: { projectId: text(a, b), tenantId: text(c, d), token: text(e, f) },
    items,
    context: context === null ? null : context.json,
  };
}

function compareFound(method: Method, read: Request | null, around: Buffer): void {
  const found = foundIn(around);
  if (read === null)
    throw new Differs(`accepted: ${JSON.stringify(found)}; the library refuses it`);
  if (hasMore(read)) throw new Differs('accepted, with what nobody would answer');
  mustEqual('the scope', found.scope, scopeOf(read));
  mustEqual('the context', found.context, contextOf(read));
  // Where nothing is asked of an object, its place holds what it held.
  if (method === 'listObjects') for (const item of found.items) item[1] = '';
  mustEqual('the items', found.items, itemsOf(read));
  for (const [namespace = '', object = '', relation = '', user = ''] of found.items) {
    checkNamespace('namespace', namespace);
    if (method !== 'listObjects') checkObjectId('object_id', object);
    checkRelation('relation', relation);
    checkUserId('subject_user_id', user);
  }
}

function compareScanner(
  { bytes, around, start, random }: RandomBody,
  method: Exclude<Method, 'write'>,
  isJson: boolean,
  read: Request | null,
  tally: Tally,
): void {
  const scanners = bytes.length > LONG_BYTES ? MANY : random.pick([FEW, MANY]);
  const scanner = isJson ? scanners.json : scanners.proto;
  const end = start + bytes.length;
  const isAccepted = scanner[method](bytes, 0, bytes.length);
  if (isAccepted) {
    compareFound(method, read, bytes);
    tally.scanned += 1;
    if (fields.contextEnd > 0) tally.contexts += 1;
    if (fields.itemCount > scanners.itemsMax) throw new Differs('more items than it may read');
  }
  // The scanner knows the bytes that are around, as it does those of a message with several bodies.
  if (random.oneIn(2)) scanner.check(around, 0, start);
  mustEqual('among others', scanner[method](around, start, end), isAccepted);
  if (isAccepted) compareFound(method, read, around);
  if (method !== 'batchCheck') return;
  let memory = Buffer.from(around);
  let isScanned = scanner.startBatch(memory, start, end, 0);
  for (; isScanned === null; tally.paused += 1) {
    memory.fill(']');
    memory = Buffer.from(around);
    isScanned = scanner.resumeBatch(memory, 0);
  }
  mustEqual('in slices', isScanned, isAccepted);
  if (isScanned) compareFound(method, read, memory);
}

function compareWrite(view: Uint8Array, read: Request | null): boolean {
  const found = scanWrite(view);
  if (found === null) return false;
  if (read === null || !('updates' in read)) throw new Differs('read; the library refuses it');
  const { projectId, tenantId } = read;
  mustEqual('the write', found, { projectId, tenantId, updates: updatesOf(read) });
  return true;
}

/** Whether it was compared. */
async function compareDecoder(
  bytes: Buffer,
  method: Method,
  isJson: boolean,
  read: Request | null,
): Promise<boolean> {
  const desc = SCHEMAS[method];
  try {
    const decoded = await decoder.decode(desc, !isJson, new Uint8Array(bytes));
    if (read === null) throw new Differs('decoded; the library refuses it');
    expect(decoded).toEqual(read);
  } catch (error) {
    if (error instanceof Differs) throw error;
    if (error instanceof AppError && error.reason !== 'BODY_MALFORMED') return false;
    const { message } = error as Error;
    // Many unknown fields are refused here.
    if (message.includes('unknown field number')) return false;
    // What ends behind the message that it is in is refused here, as others refuse it.
    if (message.includes('no protobuf at byte')) {
      mustEqual('what runs past its end', read === null || runsOn(desc, bytes), true);
      return false;
    }
    // The library takes times that are none; times.test.ts shows which are taken.
    if (read !== null && !message.includes('RFC 3339')) throw error;
  }
  return true;
}

async function compareBody(
  body: RandomBody,
  method: Method,
  isJson: boolean,
  tally: Tally,
): Promise<void> {
  const { bytes, around, start, random } = body;
  const view = around.subarray(start, start + bytes.length);
  const read = libraryReading(method, isJson, bytes);
  if (read === null) tally.refused += 1;
  else tally.accepted += 1;
  if (method !== 'write') {
    if (compareScope(view, method, isJson, read, tally)) tally.scoped += 1;
    compareScanner(body, method, isJson, read, tally);
  } else if (isJson && compareWrite(view, read)) tally.scanned += 1;
  if (!random.oneIn(BODIES_PER_DECODED)) return;
  if (await compareDecoder(bytes, method, isJson, read)) tally.decoded += 1;
}

async function compareBodies(method: Method, isJson: boolean): Promise<Tally> {
  const tally: Tally = {
    accepted: 0,
    refused: 0,
    scoped: 0,
    scanned: 0,
    paused: 0,
    contexts: 0,
    decoded: 0,
    excluded: 0,
  };
  for (let number = 0; number < BODIES[method] * TIMES; number++) {
    const body = randomBody(SEED, number, method, isJson);
    try {
      await compareBody(body, method, isJson, tally);
    } catch (error) {
      const { bytes } = body;
      const shown = `${JSON.stringify(bytes.toString('latin1'))}, as base64 ${bytes.toString('base64')}`;
      const text = `SEED=${SEED}, body ${number} of ${method}: ${(error as Error).message}\n${shown}`;
      throw new Error(text, { cause: error });
    }
    if (number % BODIES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return tally;
}

describe.each(['check', 'batchCheck', 'listObjects', 'write'] as const)('%s', (method) => {
  test.each([
    ['JSON', true],
    ['protobuf', false],
  ] as const)(
    'in %s is what the library makes of it',
    async (_, isJson) => {
      const tally = await compareBodies(method, isJson);
      if (TIMES < 1) return;
      // If most were refused, or left to others, little would be shown.
      const share = (count: number): number => count / (BODIES[method] * TIMES);
      expect(share(tally.accepted)).toBeGreaterThan(0.45);
      expect(share(tally.refused)).toBeGreaterThan(0.2);
      if (method !== 'write') expect(share(tally.scoped)).toBeGreaterThan(0.4);
      expect(share(tally.decoded)).toBeGreaterThan(0.01);
      expect(share(tally.excluded)).toBeLessThan(0.01);
      if (method !== 'write') expect(share(tally.scanned)).toBeGreaterThan(0.15);
      else if (isJson) expect(share(tally.scanned)).toBeGreaterThan(0.12);
      if (method === 'check') expect(share(tally.contexts)).toBeGreaterThan(0.08);
      if (method === 'batchCheck') expect(tally.paused).toBeGreaterThan(0);
    },
    300_000,
  );
});
