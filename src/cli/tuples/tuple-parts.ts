import { createHash, type Hash } from 'node:crypto';
import type { AppError } from '../../shared/app-error.ts';
import { errorOfAnswer, request, unavailable } from '../core/call.ts';
import type { ServiceConnection } from '../core/connection.ts';
import { isObject } from '../core/json-values.ts';
import type { Retries } from './retries.ts';

/** A line of an export that holds no tuple; docs/tuples.md describes the members. */
export type Mark = {
  readonly begin?: boolean;
  readonly end?: boolean;
  readonly cursor?: string;
  readonly consistency_token?: string;
  readonly revision_changed?: boolean;
  readonly count?: number;
  readonly sha256?: string;
};

/** Whole lines of an export: tuples, and the mark behind them. */
export type TuplePart = { readonly bytes: Buffer; readonly mark: Mark };

const NEWLINE = 0x0a;
/** The third character of a line `{"tuple":…`; no mark has it there. */
const TUPLE = 0x74;
/** Largest accepted part. The service writes parts of 256 KiB plus a line. */
const PART_BYTES_MAX = 64 * 1024 * 1024;

/**
 * The parts of an export by `GET /v1/tuples?query`, from behind `cursor` ('': all of it) to the
 * last line. After a lost connection it reconnects as `retries` allows, and continues the export.
 * Memory: a part. Errors: REFUSED, UNAVAILABLE.
 */
export async function* exportedParts(
  connection: ServiceConnection,
  query: URLSearchParams,
  retries: Retries,
  cursor = '',
): AsyncGenerator<TuplePart, void, undefined> {
  const fail = (problem: string): AppError => unavailable(connection, problem);
  for (let from = cursor; ;) {
    try {
      const asked = new URLSearchParams(query);
      if (from !== '') asked.set('cursor', from);
      const response = await request(connection, `/v1/tuples?${asked.toString()}`, {});
      for await (const part of partsOf(bodyOf(connection, response), fail)) {
        retries.begun();
        const { cursor: to, begin: isBegin, end: isEnd } = part.mark;
        if (isBegin !== true) retries.progressed();
        yield part;
        if (isEnd === true) return;
        from = to ?? from;
      }
      throw fail('the export was cut short');
    } catch (error) {
      await retries.wait(error, 'the export goes on');
    }
  }
}

/**
 * Splits chunks into parts. Compares the digest of each with the bytes since the first line. Drops
 * data behind the last mark. Errors: those of `fail`; that of a line with `error`.
 */
export async function* partsOf(
  chunks: AsyncIterable<Uint8Array>,
  fail: (problem: string) => AppError,
): AsyncGenerator<TuplePart, void, undefined> {
  let lines: Buffer[] = [];
  let carry: Buffer = Buffer.alloc(0);
  let waiting = 0;
  const check = new PartCheck(fail);
  for await (const chunk of chunks) {
    const bytes = carry.length === 0 ? Buffer.from(chunk) : Buffer.concat([carry, chunk]);
    let taken = 0;
    let at = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, at);
      if (end < 0) break;
      if (bytes[at + 2] !== TUPLE) {
        lines.push(bytes.subarray(taken, at));
        const tuples = Buffer.concat(lines);
        const own = bytes.subarray(at, end + 1);
        const mark = markOf(own, fail);
        check.pass(tuples, own, mark);
        yield { bytes: Buffer.concat([tuples, own]), mark };
        lines = [];
        waiting = 0;
        taken = end + 1;
      }
      at = end + 1;
    }
    if (at > taken) lines.push(bytes.subarray(taken, at));
    carry = bytes.subarray(at);
    waiting += at - taken;
    if (waiting + carry.length > PART_BYTES_MAX) throw fail('is no export');
  }
}

/** Verifies the digests of marks against the bytes before them. */
class PartCheck {
  readonly #fail: (problem: string) => AppError;
  #hash: Hash | undefined;

  constructor(fail: (problem: string) => AppError) {
    this.#fail = fail;
  }

  /** Verifies a part: its tuples, and the line of its mark. */
  pass(tuples: Buffer, own: Buffer, { begin: isBegin, sha256: digest }: Mark): void {
    if (isBegin === true) this.#hash = createHash('sha256');
    // Services before 2026-11 send no digest.
    else if (this.#hash !== undefined && digest !== undefined) {
      this.#hash.update(tuples);
      if (this.#hash.copy().digest('hex') !== digest) {
        throw this.#fail('an export whose bytes are not those that its digest is of');
      }
    }
    this.#hash?.update(own);
  }
}

function markOf(line: Buffer, fail: (problem: string) => AppError): Mark {
  let value: unknown;
  try {
    value = JSON.parse(line.toString('utf8'));
  } catch {
    // The answer of another server, or a file that is not an export.
    throw fail('is no export');
  }
  if (!isObject(value)) throw fail('is no export');
  if (isObject(value['error'])) throw errorOfAnswer(value['error']);
  return value;
}

async function* bodyOf(
  connection: ServiceConnection,
  response: Response,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (response.body === null) return;
  try {
    yield* response.body;
  } catch (error) {
    throw unavailable(connection, error);
  }
}

/** Counts the tuples of an export by its marks. Each `begin` mark restarts their count from 0. */
export class TupleTally {
  #before = 0;
  #current = 0;

  get count(): number {
    return this.#before + this.#current;
  }

  pass({ begin: isBegin, count }: Mark): void {
    if (isBegin === true) {
      this.#before += this.#current;
      this.#current = 0;
    } else this.#current = count ?? this.#current;
  }
}
