import type { AnswerBatch, RequestBatch, ScopeEntry } from './messages.ts';
import { RAW_FIELDS } from './messages.ts';

/**
 * Batches of raw requests and their plain answers as one buffer: what a port clones as an object
 * with its arrays costs five times as much. Everything else travels as the object that it is.
 *
 * Requests: HEAD numbers of 32 bits (batch, requests, bytes of bodies, bytes of scopes), the
 * requests' numbers as doubles, bodies, scopes and tokens as JSON.
 * Answers: HEAD numbers (batch, answers, bytes of bodies, number of bodies), ids as doubles, ends
 * of bodies as 32 bits, kinds as bytes, bodies.
 */
/** Bytes before the requests' numbers. */
export const PACKED_HEAD_BYTES = 16;
const HEAD_BYTES = PACKED_HEAD_BYTES;
const DOUBLE_BYTES = 8;
const INT_BYTES = 4;

type PackedNames = { readonly scopes: readonly ScopeEntry[]; readonly tokens: readonly string[] };

/** A batch with the number that its answer names; 0 is an answer to none. */
export type Numbered<T> = { readonly batch: number; readonly content: T };

/** Packs batches for one worker; keeps the scopes of the last one, which mostly are the next one's. */
export class RequestPacker {
  #scope: ScopeEntry | null = null;
  #text: Buffer = Buffer.alloc(0);

  /** The packed batch, or null when it holds more than raw requests. O(bytes). */
  pack(batch: number, content: RequestBatch): ArrayBuffer | null {
    const { raw, bodies, requests, cancelled, control } = content;
    if (requests.length > 0 || cancelled.length > 0 || control.length > 0) return null;
    const text = this.#textOf(content);
    const bodiesAt = HEAD_BYTES + raw.length * DOUBLE_BYTES;
    const textAt = bodiesAt + bodies.length;
    // Zeroing is in vain: every byte is written.
    const packed = Buffer.allocUnsafeSlow(textAt + text.length);
    const buffer = packed.buffer;
    writeHead(buffer, batch, content, text);
    new Float64Array(buffer, HEAD_BYTES, raw.length).set(raw);
    packed.set(bodies, bodiesAt);
    packed.set(text, textAt);
    return buffer;
  }

  /**
   * Completes a batch whose numbers and bodies were written at their positions in `buffer`. False if the rest does not
   * fit there, or the batch holds more than raw requests.
   */
  packInPlace(batch: number, content: RequestBatch, buffer: ArrayBufferLike): boolean {
    const { raw, bodies, requests, cancelled, control } = content;
    if (requests.length > 0 || cancelled.length > 0 || control.length > 0) return false;
    const text = this.#textOf(content);
    const textAt = HEAD_BYTES + raw.length * DOUBLE_BYTES + bodies.length;
    if (textAt + text.length > buffer.byteLength) return false;
    writeHead(buffer, batch, content, text);
    new Uint8Array(buffer, textAt).set(text);
    return true;
  }

  #textOf({ scopes, tokens }: PackedNames): Buffer {
    const scope = scopes[0];
    const isSingle = scope !== undefined && scopes.length === 1 && tokens.length === 1;
    if (isSingle && this.#scope !== null && sameScope(scope, this.#scope)) return this.#text;
    const text = Buffer.from(JSON.stringify({ scopes, tokens } satisfies PackedNames));
    this.#scope = isSingle ? scope : null;
    this.#text = text;
    return text;
  }
}

function writeHead(
  buffer: ArrayBufferLike,
  batch: number,
  { raw, bodies }: RequestBatch,
  text: Uint8Array,
): void {
  const head = new Uint32Array(buffer, 0, HEAD_BYTES / INT_BYTES);
  head[0] = batch;
  head[1] = raw.length / RAW_FIELDS;
  head[2] = bodies.length;
  head[3] = text.length;
}

function sameScope(a: ScopeEntry, b: ScopeEntry): boolean {
  return (
    a.tenantId === b.tenantId &&
    a.projectId === b.projectId &&
    a.expectedTenantId === b.expectedTenantId &&
    a.expectedProjectId === b.expectedProjectId &&
    a.modelVersion === b.modelVersion &&
    (a.expectedVersion ?? 0) === (b.expectedVersion ?? 0) &&
    a.readBudget === b.readBudget &&
    a.settingsVersion === b.settingsVersion &&
    a.epoch === b.epoch &&
    a.forkId === b.forkId &&
    a.isHeldOnly === b.isHeldOnly &&
    a.refusesUnknown === b.refusesUnknown
  );
}

/** Inverse of `RequestPacker`; scopes equal to those of the last batch are the same objects. */
export class RequestUnpacker {
  #text: Buffer = Buffer.alloc(0);
  #names: PackedNames = { scopes: [], tokens: [''] };

  /** Views into `buffer`, no copies. */
  unpack(buffer: ArrayBufferLike): Numbered<RequestBatch> {
    const head = new Uint32Array(buffer, 0, HEAD_BYTES / INT_BYTES);
    const batch = head[0] as number; // four, here and below
    const count = head[1] as number;
    const bodyBytes = head[2] as number;
    const textBytes = head[3] as number;
    const bodiesAt = HEAD_BYTES + count * RAW_FIELDS * DOUBLE_BYTES;
    const text = Buffer.from(buffer, bodiesAt + bodyBytes, textBytes);
    if (!text.equals(this.#text)) {
      // Written by RequestPacker of the same version.
      this.#names = JSON.parse(text.toString('utf8')) as PackedNames;
      this.#text = Buffer.from(text);
    }
    const content: RequestBatch = {
      scopes: this.#names.scopes,
      tokens: this.#names.tokens,
      raw: new Float64Array(buffer, HEAD_BYTES, count * RAW_FIELDS),
      bodies: new Uint8Array(buffer, bodiesAt, bodyBytes),
      requests: [],
      cancelled: [],
      control: [],
    };
    return { batch, content };
  }
}

/** The packed answers, or null when they hold more than short answers to raw requests. O(bytes). */
export function packAnswers(batch: number, answers: AnswerBatch): ArrayBuffer | null {
  const { ids, kinds, bodies, bodyEnds } = answers;
  if (
    answers.largeBodies.length > 0 ||
    answers.responses.length > 0 ||
    answers.acks.length > 0 ||
    answers.modelsWanted.length > 0 ||
    answers.stats !== null ||
    answers.reports.length > 0 ||
    answers.refusals.length > 0
  ) {
    return null;
  }
  const endsAt = HEAD_BYTES + ids.length * DOUBLE_BYTES;
  const kindsAt = endsAt + bodyEnds.length * INT_BYTES;
  const packed = Buffer.allocUnsafeSlow(kindsAt + kinds.length + bodies.length);
  const buffer = packed.buffer;
  const head = new Uint32Array(buffer, 0, HEAD_BYTES / INT_BYTES);
  head[0] = batch;
  head[1] = ids.length;
  head[2] = bodies.length;
  head[3] = bodyEnds.length;
  new Float64Array(buffer, HEAD_BYTES, ids.length).set(ids);
  new Uint32Array(buffer, endsAt, bodyEnds.length).set(bodyEnds);
  packed.set(kinds, kindsAt);
  packed.set(bodies, kindsAt + kinds.length);
  return buffer;
}

/** Inverse of `packAnswers`: views into `buffer`, no copies. */
export function unpackAnswers(buffer: ArrayBuffer): Numbered<AnswerBatch> {
  const head = new Uint32Array(buffer, 0, HEAD_BYTES / INT_BYTES);
  const batch = head[0] as number; // four
  const count = head[1] as number;
  const bodyBytes = head[2] as number;
  const bodyCount = head[3] as number;
  const endsAt = HEAD_BYTES + count * DOUBLE_BYTES;
  const kindsAt = endsAt + bodyCount * INT_BYTES;
  const content: AnswerBatch = {
    ids: new Float64Array(buffer, HEAD_BYTES, count),
    kinds: new Uint8Array(buffer, kindsAt, count),
    bodies: new Uint8Array(buffer, kindsAt + count, bodyBytes),
    bodyEnds: new Uint32Array(buffer, endsAt, bodyCount),
    largeBodies: [],
    responses: [],
    acks: [],
    modelsWanted: [],
    stats: null,
    reports: [],
    refusals: [],
  };
  return { batch, content };
}

/** From here on handing a buffer over is cheaper than copying it. */
const TRANSFER_BYTES_MIN = 8 * 1024;

/** The transfer list for a packed batch. */
export function transferOf(packed: ArrayBuffer): ArrayBuffer[] {
  return packed.byteLength < TRANSFER_BYTES_MIN ? NO_BUFFERS : [packed];
}

const NO_BUFFERS: ArrayBuffer[] = [];
