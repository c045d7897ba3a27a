import { BACKSTOP_BUDGET, type EvaluationTask } from '../../engine/bound/evaluator-api.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import { missingPart } from '../../model/namespace/unknown-relation.ts';
import type { WorkerStats } from '../../protocol/messages.ts';
import { QUERY_RPCS } from '../../protocol/queries.ts';
import type { BudgetRefusal, RefusedQuery } from '../../protocol/read-figures.ts';
import type { DecisionCount } from '../../protocol/shard-client.ts';
import { recordOf } from '../../shared/record.ts';
import { type CountedScope, type ProjectReads, ReadsByProject } from './project-reads.ts';
import { ReadCounts } from './read-counts.ts';
import { type PairCounter, UnknownCounts } from './unknown-counts.ts';

const PAIRS_MAX = 200;
const OTHER = 'other';
/** Batches of which a report has the sizes, at most. */
const BATCHES_MAX = 16_384;

/** Values of the label `rpc`. */
export type EvaluatedRpc = keyof WorkerStats['evalReads'];
const EVALUATED_RPCS: readonly EvaluatedRpc[] = [
  'Check',
  'CheckSet',
  'BatchCheck',
  'Expand',
  'ListObjects',
  ...QUERY_RPCS,
];

/** The request whose evaluations are counted. */
export type CountedRequest = { readonly requestId: number; readonly scope: CountedScope };

/** An evaluation or a batch that ran out of its budget. */
export type Exhausted = {
  readonly rpc: EvaluatedRpc;
  /** `namespace#relation`. */
  readonly relation: string;
  readonly limit: number;
  readonly bound: BudgetRefusal['bound'];
  /** Called only for a refusal that is passed on. */
  readonly query: () => RefusedQuery | null;
};

type Backstops = { depth: number; cycle: number; budget: number };

/**
 * Counts decisions, backstops and errors of one worker between two reports. Labels are names of
 * the project's model, at most 200 distinct pairs; everything else counts as `other`.
 */
export class DecisionStats {
  readonly #pairs = new Map<string, PairCounter>();
  readonly #other: PairCounter = makeCounter(OTHER, OTHER);
  readonly #unknown = new UnknownCounts(() => makeCounter(OTHER, OTHER));
  readonly #errors = new Map<string, { rpc: string; reason: string; count: number }>();
  /** Reads of evaluations by RPC. */
  readonly reads: Readonly<Record<EvaluatedRpc, ReadCounts>> = recordOf(
    EVALUATED_RPCS,
    () => new ReadCounts(),
  );
  #batchItems: number[] = [];
  #scopeMismatches = 0;
  #backstops: Backstops = { depth: 0, cycle: 0, budget: 0 };
  readonly #projects = new ReadsByProject();
  readonly #onRefused: (refusal: BudgetRefusal) => void;
  #request: CountedRequest | null = null;

  /**
   * `onRefused` is called for some evaluations that ran out of their budget, a few of each project between two
   * reports.
   */
  constructor(onRefused: (refusal: BudgetRefusal) => void = ignoreRefusal) {
    this.#onRefused = onRefused;
  }

  /** Counts all that follows for `request`. Hot: called with every slice of a request. */
  turnTo(request: CountedRequest): void {
    this.#request = request;
  }

  /** The reads of the current request's project; valid until the next report. Hot. */
  get project(): ProjectReads {
    const request = this.#request;
    if (request === null) throw new Error('evaluations belong to a request');
    return this.#projects.of(request.scope);
  }

  /** The counter of a pair: valid for ever, so that a batch looks it up once per run of items. */
  counter(model: NamespaceModel, namespace: string, relation: string): PairCounter {
    if (model.namespaces.get(namespace)?.has(relation) !== true) {
      return this.#counterOutside(model, namespace, relation);
    }
    const key = `${namespace}#${relation}`;
    const known = this.#pairs.get(key);
    if (known !== undefined) return known;
    if (this.#pairs.size >= PAIRS_MAX) return this.#other;
    const made = makeCounter(namespace, relation);
    this.#pairs.set(key, made);
    return made;
  }

  get other(): PairCounter {
    return this.#other;
  }

  #counterOutside(model: NamespaceModel, namespace: string, relation: string): PairCounter {
    const missing = missingPart(model, namespace, relation);
    const request = this.#request;
    if (missing === undefined || request === null) return this.#other;
    return this.#unknown.counter(model, request.scope.projectId, namespace, relation, missing);
  }

  /** `bits` as in engine/evaluator-api.ts: 1 depth, 2 cycle, 4 budget. */
  backstops(bits: number): void {
    if ((bits & 1) !== 0) this.#backstops.depth += 1;
    if ((bits & 2) !== 0) this.#backstops.cycle += 1;
    if ((bits & 4) !== 0) this.#backstops.budget += 1;
  }

  /** A task has ended, well or not. */
  evaluated(rpc: EvaluatedRpc, task: Pick<EvaluationTask<unknown>, 'reads' | 'backstops'>): void {
    const { reads = 0, backstops } = task;
    this.reads[rpc].add(reads);
    this.backstops(backstops);
    // A preview by an operator does not count against the project's callers.
    if (rpc === 'PreviewModel') return;
    if ((backstops & BACKSTOP_BUDGET) !== 0) this.project.exhausted(reads);
    else this.project.answered(reads);
  }

  /** An evaluation, or a batch as a whole, ran out of its budget. */
  refused({ rpc, relation, limit, bound, query }: Exhausted): void {
    const request = this.#request;
    const { project } = this;
    if (request === null || !project.refused()) return;
    const { requestId, scope } = request;
    this.#onRefused({
      requestId,
      projectId: scope.projectId,
      tenantId: scope.tenantId,
      rpc,
      relation,
      limit,
      bound,
      query: query(),
      unreported: project.takeUnreported(),
    });
  }

  /** A request named another scope than the gateway had read. */
  scopeMismatch(): void {
    this.#scopeMismatches += 1;
  }

  /** The size of a BatchCheck. */
  batchOf(items: number): void {
    if (this.#batchItems.length < BATCHES_MAX) this.#batchItems.push(items);
  }

  /** A failed item of a BatchCheck; failed calls are counted by the gateway. */
  error(rpc: string, reason: string): void {
    const key = `${rpc} ${reason}`;
    const known = this.#errors.get(key);
    if (known === undefined) this.#errors.set(key, { rpc, reason, count: 1 });
    else known.count += 1;
  }

  /** Everything counted since the last call. */
  drain(): Pick<
    WorkerStats,
    | 'decisions'
    | 'unknown'
    | 'backstops'
    | 'errors'
    | 'evalReads'
    | 'projects'
    | 'batchItems'
    | 'scopeMismatches'
  > {
    const unknown = this.#unknown.drain();
    const decisions: DecisionCount[] = [];
    for (const counter of [...this.#pairs.values(), this.#other, ...this.#unknown.counters]) {
      const { namespace, relation } = counter;
      for (const outcome of ['allowed', 'denied', 'error'] as const) {
        const count = counter[outcome];
        if (count > 0) decisions.push({ namespace, relation, outcome, count });
        counter[outcome] = 0;
      }
    }
    const errors = [...this.#errors.values()];
    const backstops = this.#backstops;
    const batchItems = this.#batchItems;
    this.#batchItems = [];
    const scopeMismatches = this.#scopeMismatches;
    this.#scopeMismatches = 0;
    this.#errors.clear();
    this.#backstops = { depth: 0, cycle: 0, budget: 0 };
    const { reads } = this;
    const evalReads = recordOf(EVALUATED_RPCS, (rpc) => reads[rpc].drain());
    const projects = this.#projects.drain();
    const counts = { batchItems, scopeMismatches };
    return { decisions, unknown, backstops, errors, evalReads, projects, ...counts };
  }
}

function ignoreRefusal(): void {
  // Benchmarks and tests of evaluations alone pass no callback.
}

function makeCounter(namespace: string, relation: string): PairCounter {
  return { namespace, relation, allowed: 0, denied: 0, error: 0 };
}
