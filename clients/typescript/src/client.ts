import type { Client } from '@connectrpc/connect';
import { BudgetService } from '../../../src/gen/gatehouse/v1/budget_service_pb.ts';
import { ModelService } from '../../../src/gen/gatehouse/v1/model_service_pb.ts';
import {
  type ExplainResponse,
  type ListSubjectsResponse,
  QueryService,
} from '../../../src/gen/gatehouse/v1/query_service_pb.ts';
import { TupleService } from '../../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { AdminService } from '../../../src/gen/workspace/v1/admin_service_pb.ts';
import { AuthzService } from '../../../src/gen/workspace/v1/authz_service_pb.ts';
import { GroupService } from '../../../src/gen/workspace/v1/group_service_pb.ts';
import { SeatService } from '../../../src/gen/workspace/v1/seat_service_pb.ts';
import { WorkspaceService } from '../../../src/gen/workspace/v1/workspace_service_pb.ts';
import { batchByClient, batchByFetch } from './batch-call.ts';
import { CheckBatcher, type Decision } from './batcher.ts';
import { currentSession } from './current-session.ts';
import { errorFrom, GatehouseError } from './errors.ts';
import {
  type Model,
  type Question,
  questionInit,
  type QueryOptions,
  scopeInit,
  type ShardOptions,
  type Subject,
  subjectInit,
  type Tuple,
} from './questions.ts';
import { RETRY_DEFAULT, type RetryPolicy, withRetry } from './retry.ts';
import type { Session, ShardName } from './session.ts';
import { serviceClient, type TransportOptions, transportOf } from './transport.ts';
import { follow, type WatchEvent, type WatchOptions } from './watch.ts';
import { TupleWrites, type WriteOptions, type Written } from './writes.ts';

export type ClientOptions = TransportOptions &
  ShardOptions & {
    /** Milliseconds after which a call fails that states no time of its own. Default 5000; 0 = none. */
    readonly timeoutMs?: number;
    /** How reads are made again; `false` = once. Writes are made again where the call asks for it. */
    readonly retry?: Partial<RetryPolicy> | false;
  };

const TIMEOUT_MS_DEFAULT = 5_000;

/** A deny as an error, for code that goes on only after an allow. */
export class Denied extends Error {
  override readonly name = 'Denied';
  readonly decision: Decision;

  constructor(question: Question, decision: Decision) {
    super(`${question.relation} on ${question.namespace}:${question.objectId} is denied`);
    this.decision = decision;
  }
}

/**
 * Asks a Gatehouse service. One client serves a whole process: it holds no state but waiting questions. It remembers
 * no decision: a revoked grant must stop at once, and the service answers from memory as a cache would.
 */
export class GatehouseClient<M extends Model = Model> {
  /** Every method of every service, as the protos have it; errors are GatehouseError. */
  readonly authz: Client<typeof AuthzService>;
  readonly queries: Client<typeof QueryService>;
  readonly tuples: Client<typeof TupleService>;
  readonly models: Client<typeof ModelService>;
  readonly budgets: Client<typeof BudgetService>;
  readonly admin: Client<typeof AdminService>;
  readonly workspaces: Client<typeof WorkspaceService>;
  readonly groups: Client<typeof GroupService>;
  readonly seats: Client<typeof SeatService>;
  readonly #shard: ShardName;
  readonly #timeoutMs: number;
  readonly #retry: RetryPolicy;
  readonly #batcher: CheckBatcher;
  readonly #writes: TupleWrites;

  constructor(options: ClientOptions) {
    const { project = '', tenant = '', retry = {}, timeoutMs = TIMEOUT_MS_DEFAULT } = options;
    this.#shard = { project, tenant };
    this.#timeoutMs = timeoutMs === 0 ? Number.POSITIVE_INFINITY : timeoutMs;
    this.#retry = { ...RETRY_DEFAULT, ...(retry === false ? { attempts: 1 } : retry) };
    const transport = transportOf(options, this.#shard);
    this.authz = serviceClient(AuthzService, transport);
    this.queries = serviceClient(QueryService, transport);
    this.tuples = serviceClient(TupleService, transport);
    this.models = serviceClient(ModelService, transport);
    this.budgets = serviceClient(BudgetService, transport);
    this.admin = serviceClient(AdminService, transport);
    this.workspaces = serviceClient(WorkspaceService, transport);
    this.groups = serviceClient(GroupService, transport);
    this.seats = serviceClient(SeatService, transport);
    const send = options.transport ? batchByClient(this.queries) : batchByFetch(options);
    this.#batcher = new CheckBatcher(send, this.#retry, this.#timeoutMs);
    this.#writes = new TupleWrites(this.tuples, this.#retry);
  }

  /** Whether the subject holds the relation. Questions of one tick travel together. Errors: GatehouseError. */
  async check(question: Question<M>, options: QueryOptions<M> = {}): Promise<boolean> {
    return (await this.decide(question, options)).allowed;
  }

  /** As `check`, with what is to be said of the answer. */
  decide(question: Question<M>, options: QueryOptions<M> = {}): Promise<Decision> {
    const asked = options as QueryOptions;
    return this.#batcher.ask(question, asked, this.#shardOf(options), sessionOf(options));
  }

  /** As `check`, of several questions, in their order; one that fails fails all. */
  checkAll(
    questions: readonly Question<M>[],
    options: QueryOptions<M> = {},
  ): Promise<readonly boolean[]> {
    return Promise.all(questions.map((question) => this.check(question, options)));
  }

  /** Returns after an allow. Errors: Denied after a deny; GatehouseError. */
  async demand(question: Question<M>, options: QueryOptions<M> = {}): Promise<void> {
    const decision = await this.decide(question, options);
    if (!decision.allowed) throw new Denied(question, decision);
  }

  /** Why the answer is what it is. */
  explain(question: Question<M>, options: QueryOptions<M> = {}): Promise<ExplainResponse> {
    return this.#read(options, (scope, limits) =>
      this.queries.explain({ scope, question: questionInit(question as Question) }, limits),
    );
  }

  /** The ids of all objects of a namespace on which the subject holds the relation. */
  async listObjects<Namespace extends keyof M & string>(
    query: {
      readonly namespace: Namespace;
      readonly relation: M[Namespace];
      readonly subject: Subject;
    },
    options: QueryOptions<M> = {},
  ): Promise<readonly string[]> {
    const { namespace, relation } = query;
    const { objectIds } = await this.#read(options, async (scope, limits) => {
      const request = { scope, namespace, relation, subject: subjectInit(query.subject) };
      const parts = { objectIds: [] as string[], consistencyToken: '' };
      for await (const part of this.queries.streamObjects(request, limits)) {
        parts.objectIds.push(...part.objectIds);
        parts.consistencyToken = part.consistencyToken;
      }
      return parts;
    });
    return objectIds;
  }

  /**
   * Who holds a relation on an object, all at once. `wildcard` means everybody but `excludedUserIds`: look at it before
   * a list is shown as complete.
   */
  listSubjects<Namespace extends keyof M & string>(
    query: {
      readonly namespace: Namespace;
      readonly objectId: string;
      readonly relation: M[Namespace];
    },
    options: QueryOptions<M> = {},
  ): Promise<ListSubjectsResponse> {
    return this.#read(options, (scope, limits) =>
      this.queries.listSubjects({ scope, ...query }, limits),
    );
  }

  /** Writes tuples. Errors: GatehouseError; after `WRITE_OUTCOME_UNKNOWN` nobody knows whether it was done. */
  write(tuples: readonly Tuple<M>[], options: WriteOptions = {}): Promise<Written> {
    return this.change({ insert: tuples }, options);
  }

  /** Deletes tuples; one that is not there is none. */
  delete(tuples: readonly Tuple<M>[], options: WriteOptions = {}): Promise<Written> {
    return this.change({ delete: tuples }, options);
  }

  /** Writes and deletes tuples at once: all of it or nothing. */
  change(
    updates: { readonly insert?: readonly Tuple<M>[]; readonly delete?: readonly Tuple<M>[] },
    options: WriteOptions = {},
  ): Promise<Written> {
    const limits = { timeoutMs: this.#timeoutMs, ...options };
    return this.#writes.change(updates, limits, this.#shardOf(options), sessionOf(options));
  }

  /** Follows the changes of tuples. A connection that breaks is made anew, and goes on where it was. */
  watch(options: WatchOptions = {}): AsyncGenerator<WatchEvent, void, undefined> {
    return follow(this.tuples, this.#shardOf(options), options);
  }

  #shardOf({ project, tenant }: ShardOptions): ShardName {
    return { project: project ?? this.#shard.project, tenant: tenant ?? this.#shard.tenant };
  }

  /** A read that is no Check: with the session's token, its time, and its second attempts. */
  async #read<Response extends { readonly consistencyToken: string }>(
    options: QueryOptions<M>,
    call: (
      scope: ReturnType<typeof scopeInit>,
      limits: { readonly signal: AbortSignal },
    ) => Promise<Response>,
  ): Promise<Response> {
    const shard = this.#shardOf(options);
    const session = sessionOf(options);
    const sent = session?.sent(shard);
    const token = options.token ?? sent?.token ?? '';
    const signal = this.#endOf(options);
    const ask = (with_: string): Promise<Response> =>
      withRetry(this.#retry, signal, () =>
        call(scopeInit(options as QueryOptions, shard, with_), { signal }),
      );
    let response: Response;
    try {
      response = await ask(token);
    } catch (thrown) {
      const error = endedBy(signal, thrown);
      if (error.reason !== 'TOKEN_INVALID' || options.token !== undefined || token === '') {
        throw error;
      }
      session?.drop(shard, token);
      response = await ask('');
    }
    if (sent !== undefined) session?.read(shard, sent, response.consistencyToken);
    return response;
  }

  #endOf({ timeoutMs = this.#timeoutMs, signal }: QueryOptions<M>): AbortSignal {
    const ends = signal === undefined ? [] : [signal];
    if (timeoutMs !== Number.POSITIVE_INFINITY) ends.push(AbortSignal.timeout(timeoutMs));
    return AbortSignal.any(ends);
  }
}

function sessionOf(options: { readonly session?: Session | null }): Session | undefined {
  return options.session === undefined ? currentSession() : (options.session ?? undefined);
}

/** A time that has passed is told from a caller that went away. */
function endedBy(signal: AbortSignal, thrown: unknown): GatehouseError {
  const { reason } = signal as { readonly reason: unknown };
  if (signal.aborted && reason instanceof DOMException && reason.name === 'TimeoutError') {
    return new GatehouseError('deadline_exceeded', 'the time of the call has passed', {
      cause: thrown,
    });
  }
  return errorFrom(thrown);
}
