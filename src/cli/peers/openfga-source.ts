import { openFgaTuple } from '../../language/openfga/openfga-tuple.ts';
import { readOpenFgaJson } from '../../language/openfga/read-openfga-model.ts';
import { parseExactJson } from '../../language/peers/exact-numbers.ts';
import type { PeerModel } from '../../language/peers/peer-model.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliReason } from '../core/exit-codes.ts';
import { messageOf } from '../core/files.ts';
import { isObject, type JsonRecord } from '../core/json-values.ts';
import {
  type PeerAnswer,
  type PeerQuery,
  type PeerSource,
  type PeerTupleSource,
  referenceText,
} from './peer-source.ts';

/** OpenFGA 1.22.1 refuses larger pages of Read, and larger batches by its defaults. */
const READ_PAGE = 100;
const BATCH_MAX = 50;
/** Largest accepted answer, in characters; a page of tuples has at most a few hundred kilobytes. */
const BYTES_MAX = 64 << 20;

export type OpenFgaOptions = {
  /** `http://HOST:8080`. */
  readonly endpoint: string;
  readonly token: string | undefined;
  /** Undefined: the only store of the service. */
  readonly store: string | undefined;
  /** Undefined: the latest model. */
  readonly model: string | undefined;
  readonly timeoutMs: number;
};

/**
 * A store of a running OpenFGA by its HTTP API v1. Errors: UNAVAILABLE if it cannot be reached;
 * REFUSED for its refusals, and if `store` is undefined and the service does not have exactly one
 * store.
 */
export async function openOpenFga(options: OpenFgaOptions): Promise<PeerSource> {
  const store = options.store ?? (await onlyStore(options));
  return new OpenFgaSource(options, `/stores/${encodeURIComponent(store)}`);
}

async function onlyStore(options: OpenFgaOptions): Promise<string> {
  const { stores } = await ask(options, 'GET', '/stores?page_size=50');
  const known = (Array.isArray(stores) ? stores : []).filter(isObject);
  const [first, ...more] = known;
  if (first !== undefined && more.length === 0) return String(first['id']);
  const names = known.map(({ id, name }) => `${String(id)} (${String(name)})`).join(', ');
  throw refused(
    known.length === 0
      ? `${options.endpoint} has no store`
      : `${options.endpoint} has several stores: give --store, one of ${names}`,
  );
}

class OpenFgaSource implements PeerSource {
  readonly name = 'OpenFGA';
  readonly #options: OpenFgaOptions;
  readonly #path: string;
  #modelId: string | undefined;

  constructor(options: OpenFgaOptions, path: string) {
    this.#options = options;
    this.#path = path;
    this.#modelId = options.model;
  }

  async readModel(): Promise<PeerModel> {
    const models = `${this.#path}/authorization-models`;
    const named = this.#modelId;
    const answer =
      named === undefined
        ? await ask(this.#options, 'GET', `${models}?page_size=1`)
        : await ask(this.#options, 'GET', `${models}/${encodeURIComponent(named)}`);
    const list = Array.isArray(answer['authorization_models'])
      ? answer['authorization_models']
      : [];
    const model: unknown = named === undefined ? list[0] : answer['authorization_model'];
    if (!isObject(model)) throw refused(`${this.#options.endpoint}: the store has no model`);
    this.#modelId = String(model['id']);
    return readOpenFgaJson(JSON.stringify(model));
  }

  async *readTuples(): AsyncGenerator<PeerTupleSource> {
    let token = '';
    let count = 0;
    do {
      const body = { page_size: READ_PAGE, continuation_token: token };
      const page = await ask(this.#options, 'POST', `${this.#path}/read`, body);
      const tuples = Array.isArray(page['tuples']) ? page['tuples'] : [];
      for (const tuple of tuples) {
        count += 1;
        yield { place: `tuple ${count}`, read: () => openFgaTuple(tuple) };
      }
      token = typeof page['continuation_token'] === 'string' ? page['continuation_token'] : '';
    } while (token !== '');
  }

  async query(queries: readonly PeerQuery[]): Promise<readonly PeerAnswer[]> {
    const answers: PeerAnswer[] = [];
    for (let from = 0; from < queries.length; from += BATCH_MAX) {
      answers.push(...(await this.#askSome(queries.slice(from, from + BATCH_MAX))));
    }
    return answers;
  }

  async #askSome(queries: readonly PeerQuery[]): Promise<readonly PeerAnswer[]> {
    const checks = queries.map(({ object, relation, subject }, index) => ({
      tuple_key: { user: referenceText(subject), relation, object: referenceText(object) },
      correlation_id: `q${index}`,
      context: {},
    }));
    const body = {
      authorization_model_id: this.#modelId,
      checks,
      consistency: 'HIGHER_CONSISTENCY',
    };
    const { result } = await ask(this.#options, 'POST', `${this.#path}/batch-check`, body);
    return queries.map((_, index) => answerOf(isObject(result) ? result[`q${index}`] : undefined));
  }

  close(): void {
    // Each call has a connection of the pool.
  }
}

function answerOf(value: unknown): PeerAnswer {
  if (!isObject(value)) return { allowed: false, error: 'no answer' };
  const { allowed, error } = value;
  if (isObject(error)) {
    const { message } = error;
    return { allowed: false, error: typeof message === 'string' ? message : 'an error' };
  }
  return { allowed: allowed === true, error: '' };
}

async function ask(
  { endpoint, token, timeoutMs }: OpenFgaOptions,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<JsonRecord> {
  let status: number;
  let text: string;
  try {
    const response = await fetch(`${endpoint}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    ({ status } = response);
    text = await boundedText(response);
  } catch (error) {
    throw new AppError<CliReason>('UNAVAILABLE', `${endpoint}: ${messageOf(error)}`, {}, error);
  }
  const value = valueOf(text);
  if (status === 200 && isObject(value)) return value;
  const said = isObject(value) ? String(value['message'] ?? value['code']) : text.slice(0, 200);
  const problem = `${endpoint} answered ${status}: ${said}`;
  if (status >= 500 || status === 429) throw new AppError<CliReason>('UNAVAILABLE', problem);
  throw refused(problem);
}

async function boundedText(response: Response): Promise<string> {
  let text = '';
  for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.length > BYTES_MAX)
      throw new Error(`the answer has more than ${BYTES_MAX} characters`);
  }
  return text;
}

function valueOf(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined;
    throw error;
  }
}

function refused(problem: string): AppError {
  return new AppError<CliReason>('REFUSED', problem);
}
