import type { PeerModel, PeerTuple } from '../../language/peers/peer-model.ts';
import { readSpiceDbSchema } from '../../language/spicedb/read-spicedb-schema.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliReason } from '../core/exit-codes.ts';
import { messageOf } from '../core/files.ts';
import type { PeerAnswer, PeerQuery, PeerSource, PeerTupleSource } from './peer-source.ts';
import {
  openSpiceDbClient,
  type SpiceDbClient,
  type SpiceDbPair,
  type SpiceDbRelationship,
} from './spicedb-client.ts';

/** Reads the newest state, not a cached one. */
const CONSISTENT = { requirement: { oneofKind: 'fullyConsistent', fullyConsistent: true } };
const HAS_PERMISSION = 2;
const CONDITIONAL_PERMISSION = 3;
/** Codes of gRPC (grpc/doc/statuscodes.md) after which another attempt may succeed. */
const PASSING = new Set([1, 2, 4, 8, 10, 13, 14, 15]);
const BATCH_MAX = 100;

/**
 * A running SpiceDB by gRPC, `http://HOST:50051` in plain text or `https://`. Errors: REFUSED if
 * the client's package is not installed; those of the service.
 */
export async function openSpiceDb(
  endpoint: string,
  token: string | undefined,
  timeoutMs: number,
): Promise<PeerSource> {
  const { client, jsonOf } = await openSpiceDbClient(endpoint, token ?? '');
  return new SpiceDbSource(client, jsonOf, endpoint, timeoutMs);
}

class SpiceDbSource implements PeerSource {
  readonly name = 'SpiceDB';
  readonly #client: SpiceDbClient;
  readonly #jsonOf: (value: unknown) => unknown;
  readonly #endpoint: string;
  readonly #timeoutMs: number;

  constructor(
    client: SpiceDbClient,
    jsonOf: (value: unknown) => unknown,
    endpoint: string,
    timeoutMs: number,
  ) {
    this.#client = client;
    this.#jsonOf = jsonOf;
    this.#endpoint = endpoint;
    this.#timeoutMs = timeoutMs;
  }

  async readModel(): Promise<PeerModel> {
    const { schemaText } = await this.#within(this.#client.promises.readSchema({}));
    return readSpiceDbSchema(schemaText);
  }

  async *readTuples(): AsyncGenerator<PeerTupleSource> {
    const body = { consistency: CONSISTENT, optionalLimit: 0 };
    let count = 0;
    try {
      for await (const { relationships } of this.#client.exportBulkRelationships(body)) {
        for (const relationship of relationships) {
          count += 1;
          const place = `relationship ${count}`;
          yield { place, read: () => tupleOf(relationship, place, this.#jsonOf) };
        }
      }
    } catch (error) {
      throw this.#errorOf(error);
    }
  }

  async query(queries: readonly PeerQuery[]): Promise<readonly PeerAnswer[]> {
    const answers: PeerAnswer[] = [];
    for (let from = 0; from < queries.length; from += BATCH_MAX) {
      const items = queries.slice(from, from + BATCH_MAX).map(({ object, relation, subject }) => ({
        resource: { objectType: object.type, objectId: object.id },
        permission: relation,
        subject: {
          object: { objectType: subject.type, objectId: subject.id },
          optionalRelation: subject.relation,
        },
      }));
      const asked = this.#client.promises.checkBulkPermissions({ consistency: CONSISTENT, items });
      const { pairs } = await this.#within(asked);
      answers.push(...items.map((_, index) => answerOf(pairs[index])));
    }
    return answers;
  }

  close(): void {
    this.#client.close();
  }

  /** Bounds a call by the timeout: the client retries a refused connection without end. */
  async #within<T>(asked: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no answer within ${this.#timeoutMs / 1000} s`)),
        this.#timeoutMs,
      );
    });
    try {
      return await Promise.race([asked, late]);
    } catch (error) {
      throw this.#errorOf(error);
    } finally {
      clearTimeout(timer);
    }
  }

  #errorOf(error: unknown): AppError {
    if (error instanceof AppError) return error;
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    const isRefusal = typeof code === 'number' && !PASSING.has(code);
    return new AppError<CliReason>(
      isRefusal ? 'REFUSED' : 'UNAVAILABLE',
      `${this.#endpoint}: ${messageOf(error)}`,
      {},
      error,
    );
  }
}

function tupleOf(
  { resource, relation, subject, optionalCaveat, optionalExpiresAt }: SpiceDbRelationship,
  place: string,
  jsonOf: (value: unknown) => unknown,
): PeerTuple {
  const whom = subject?.object;
  const context = optionalCaveat?.context;
  return {
    object: { type: resource?.objectType ?? '', id: resource?.objectId ?? '', relation: '' },
    relation,
    subject: {
      type: whom?.objectType ?? '',
      id: whom?.objectId ?? '',
      relation: subject?.optionalRelation ?? '',
    },
    condition: optionalCaveat?.caveatName,
    context: context === undefined ? undefined : jsonOf(context),
    expiresAt: optionalExpiresAt === undefined ? undefined : instantOf(optionalExpiresAt),
    place,
  };
}

/** RFC 3339, rounded up to a millisecond: a grant must not end before its time. */
function instantOf({
  seconds,
  nanos,
}: NonNullable<SpiceDbRelationship['optionalExpiresAt']>): string {
  return new Date(Number(seconds) * 1000 + Math.ceil(nanos / 1e6)).toISOString();
}

function answerOf(pair: SpiceDbPair | undefined): PeerAnswer {
  const { item, error } = pair?.response ?? {};
  if (item === undefined) return { allowed: false, error: error?.message ?? 'no answer' };
  const isUndecided = item.permissionship === CONDITIONAL_PERMISSION;
  return {
    allowed: item.permissionship === HAS_PERMISSION,
    error: isUndecided ? 'an input is missing' : '',
  };
}
