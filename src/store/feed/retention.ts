import type { Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { type LoopReport, reportedRun } from '../../shared/loop-report.ts';
import type { SharedWork } from '../postgres/shared-work.ts';
import { type StoreLog, silentLog } from '../postgres/store-log.ts';

export type RetentionRule = {
  /** Change rows older than this go. */
  readonly ageMaxMs: number;
  /** Changes kept of each shard at most, not counting those younger than `ageMinMs`. */
  readonly countMax: number;
  /** Writers that lost their connection still search for their commit id in the rows of this age. */
  readonly ageMinMs: number;
};

/** Rows that one transaction deletes at most: it holds the shard's lock, which writers wait for. */
const BATCH_ROWS_MAX = 500;
const SHARDS_PER_ROUND_MAX = 200;

// Both find the last revision that may go for each of some shards.
const FIND_BY_AGE = `
  select project_id, tenant_id, max(seq)::text as up_to from (
    select project_id, tenant_id, seq from tuple_change
    where created_at < now() - $1::float8 * interval '1 millisecond'
    order by created_at limit $2
  ) old group by project_id, tenant_id order by project_id, tenant_id limit $3`;
const FIND_BY_COUNT = `
  select s.project_id, s.tenant_id, c.seq::text as up_to
  from shard s cross join lateral (
    select t.seq from tuple_change t
    where t.project_id = s.project_id and t.tenant_id = s.tenant_id and t.seq <= s.seq - $1::bigint
      and t.created_at < now() - $2::float8 * interval '1 millisecond'
    order by t.seq desc limit 1
  ) c
  where s.seq - s.retained_from + 1 > $1::bigint
  order by s.project_id, s.tenant_id limit $3`;

// The border is raised in the statement that deletes: a reader sees both or neither. An import may
// have raised it before, past rows that writers may still have searched for.
const PRUNE = `
  with raised as (
    update shard s set retained_from = least($3::bigint, s.retained_from - 1 + $4::bigint) + 1
    where s.project_id = $1 and s.tenant_id = $2 and s.retained_from <= $3::bigint
      and $3::bigint <= s.seq
    returning s.retained_from
  ), border as (
    select r.retained_from as seq from raised r
    union all
    select least(s.retained_from, $3::bigint + 1) from shard s
    where s.project_id = $1 and s.tenant_id = $2 and s.retained_from > $3::bigint
  )
  delete from tuple_change t where t.ctid = any (array(
    select c.ctid from tuple_change c cross join border b
    where c.project_id = $1 and c.tenant_id = $2 and c.seq < b.seq
    order by c.seq limit $4::bigint
  ))`;

type FoundShard = {
  readonly project_id: string;
  readonly tenant_id: string;
  readonly up_to: string;
};

/**
 * Deletes change rows that the rule releases, in small transactions, until none is left or `signal`
 * aborts. A reader that was further behind must reload (changes.ts). Returns the rows deleted.
 */
export async function pruneChanges(
  pool: Pool,
  rule: RetentionRule,
  signal?: AbortSignal,
): Promise<number> {
  let total = 0;
  for (;;) {
    const byAge = await pool.query<FoundShard>(FIND_BY_AGE, [
      Math.max(rule.ageMaxMs, rule.ageMinMs),
      BATCH_ROWS_MAX * 20,
      SHARDS_PER_ROUND_MAX,
    ]);
    const byCount = await pool.query<FoundShard>(FIND_BY_COUNT, [
      rule.countMax,
      rule.ageMinMs,
      SHARDS_PER_ROUND_MAX,
    ]);
    let deleted = 0;
    for (const { project_id, tenant_id, up_to } of [...byAge.rows, ...byCount.rows]) {
      if (signal?.aborted === true) return total + deleted;
      const shard = { projectId: project_id, tenantId: tenant_id };
      deleted += await pruneShard(pool, shard, up_to, signal);
    }
    total += deleted;
    if (deleted === 0) return total;
  }
}

async function pruneShard(
  pool: Pool,
  shard: ShardKey,
  upTo: string,
  signal: AbortSignal | undefined,
): Promise<number> {
  let total = 0;
  for (;;) {
    const { rowCount } = await pool.query({
      name: 'prune-changes',
      text: PRUNE,
      values: [shard.projectId, shard.tenantId, upTo, BATCH_ROWS_MAX],
    });
    total += rowCount ?? 0;
    if ((rowCount ?? 0) === 0 || signal?.aborted === true) return total;
  }
}

export type ChangeRetentionOptions = {
  readonly pool: Pool;
  /** Prunes on one instance at a time. */
  readonly shared: SharedWork;
  readonly rule: RetentionRule;
  readonly intervalMs: number;
  readonly report: LoopReport;
  readonly log?: StoreLog | undefined;
};

/** Prunes by itself, again and again; a failed run is reported, and the next one makes up for it. */
export class ChangeRetention {
  readonly #options: ChangeRetentionOptions;
  readonly #abort = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(options: ChangeRetentionOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      this.#running ??= reportedRun(this.#options.report, () => this.#run()).finally(
        () => (this.#running = undefined),
      );
    }, this.#options.intervalMs).unref();
  }

  /** Resolves when no run is under way; a running one ends after its present transaction. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#abort.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { pool, shared, rule, log = silentLog } = this.#options;
    const deleted = await shared.run('retention', (lost) =>
      pruneChanges(pool, rule, AbortSignal.any([lost, this.#abort.signal])),
    );
    if (deleted !== undefined && deleted > 0) log('info', 'changes_pruned', { deleted });
  }
}
