import type { BatchSpace } from '../../protocol/batch-memory.ts';
import type {
  ControlMessage,
  RequestBatch,
  ScopeEntry,
  WorkerRequest,
} from '../../protocol/messages.ts';
import { RAW_FIELDS } from '../../protocol/messages.ts';
import type { RawScope, ReadScope } from '../../protocol/shard-client.ts';
import { ParsedRequest, PendingRawRequest } from '../queues/pending-request.ts';
import type { PendingRequest } from '../queues/shard-queue.ts';
import type { SlotTransport } from './slot-transport.ts';

const EMPTY_BYTES = new Uint8Array(0);
const EMPTY_NUMBERS = new Float64Array(0);

/**
 * Packs requests into a message. Equal scopes in sequence share one entry. Bodies are copied once: into the
 * transport's `space`, if it has one for raw requests alone, else into a new buffer that it may transfer.
 * O(requests + bytes).
 */
export function batchOfRequests(
  requests: readonly PendingRequest[],
  cancelled: readonly number[],
  control: readonly ControlMessage[],
  transport: Pick<SlotTransport, 'space'>,
): RequestBatch {
  const scopes = new ScopeTable();
  const tokens: string[] = [''];
  const parsed: WorkerRequest[] = [];
  let rawCount = 0;
  let bodyBytes = 0;
  for (const request of requests) {
    if (request instanceof PendingRawRequest) {
      rawCount += 1;
      bodyBytes += request.body.length;
    }
  }
  const isForCapacity =
    rawCount > 0 && rawCount === requests.length && cancelled.length === 0 && control.length === 0;
  const space = isForCapacity ? transport.space(rawCount, bodyBytes) : null;
  const { raw, bodies } = space ?? ownSpace(rawCount, bodyBytes);
  let field = 0;
  let end = 0;
  for (const request of requests) {
    if (request instanceof PendingRawRequest) {
      const { scope, body, expected } = request;
      let token = 0;
      if (expected.token !== '') token = tokens.push(expected.token) - 1;
      bodies.set(body, end);
      raw[field] = request.id;
      raw[field + 1] = request.opcode;
      raw[field + 2] = scopes.indexOf(scope, expected);
      raw[field + 3] = scope.minRevision;
      raw[field + 4] = scope.deadlineMs;
      raw[field + 5] = end;
      end += body.length;
      raw[field + 6] = end;
      raw[field + 7] = token;
      raw[field + 8] = scope.isDeadlineStated === true ? 1 : 0;
      field += RAW_FIELDS;
    } else if (request instanceof ParsedRequest) {
      parsed.push(wireOfParsed(request, scopes));
    }
  }
  return { scopes: scopes.entries, tokens, raw, bodies, requests: parsed, cancelled, control };
}

function ownSpace(rawCount: number, bodyBytes: number): BatchSpace {
  return {
    raw: rawCount === 0 ? EMPTY_NUMBERS : new Float64Array(rawCount * RAW_FIELDS),
    bodies:
      bodyBytes === 0 ? EMPTY_BYTES : new Uint8Array(Buffer.allocUnsafeSlow(bodyBytes).buffer),
  };
}

function wireOfParsed({ id, scope, query }: ParsedRequest, scopes: ScopeTable): WorkerRequest {
  return {
    requestId: id,
    scope: scopes.indexOf(scope, NO_NAMES),
    minRevision: scope.minRevision,
    deadlineMs: scope.deadlineMs,
    isDeadlineStated: scope.isDeadlineStated === true,
    query,
  };
}

/** Names of a parsed request: its worker reads none. */
const NO_NAMES: RawScope = { projectId: '', tenantId: '', token: '' };

/** Interns scopes of one batch; the last one is compared first, since requests of a shard come in runs. */
class ScopeTable {
  readonly entries: ScopeEntry[] = [];
  readonly #indexByKey = new Map<string, number>();
  #lastScope: ReadScope | null = null;
  #lastExpected: RawScope = NO_NAMES;
  #lastIndex = 0;

  /** `expected`: what a raw request names. */
  indexOf(scope: ReadScope, expected: RawScope): number {
    const last = this.#lastScope;
    const lastExpected = this.#lastExpected;
    const { projectId: expectedProjectId, tenantId: expectedTenantId } = expected;
    const { modelVersion: expectedVersion = 0 } = expected;
    if (
      last !== null &&
      last.tenantId === scope.tenantId &&
      last.projectId === scope.projectId &&
      last.modelVersion === scope.modelVersion &&
      last.readBudget === scope.readBudget &&
      last.settingsVersion === scope.settingsVersion &&
      last.epoch === scope.epoch &&
      last.forkId === scope.forkId &&
      last.isHeldOnly === scope.isHeldOnly &&
      last.refusesUnknown === scope.refusesUnknown &&
      lastExpected.projectId === expectedProjectId &&
      lastExpected.tenantId === expectedTenantId &&
      (lastExpected.modelVersion ?? 0) === expectedVersion
    ) {
      return this.#lastIndex;
    }
    const { projectId, tenantId, modelVersion, readBudget, settingsVersion } = scope;
    const { epoch, forkId, isHeldOnly, refusesUnknown } = scope;
    // Ids hold no U+0000, so the key is unambiguous.
    const key = `${projectId}\0${tenantId}\0${expectedProjectId}\0${expectedTenantId}\0${modelVersion}\0${readBudget}\0${settingsVersion}\0${epoch}\0${forkId}\0${isHeldOnly}\0${refusesUnknown === true}\0${expectedVersion}`;
    let index = this.#indexByKey.get(key);
    if (index === undefined) {
      index = this.entries.length;
      this.entries.push({
        projectId,
        tenantId,
        modelVersion,
        readBudget,
        settingsVersion,
        epoch,
        forkId,
        isHeldOnly,
        refusesUnknown,
        expectedProjectId,
        expectedTenantId,
        expectedVersion,
      });
      this.#indexByKey.set(key, index);
    }
    this.#lastScope = scope;
    this.#lastExpected = expected;
    this.#lastIndex = index;
    return index;
  }
}
