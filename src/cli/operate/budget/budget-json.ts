/**
 * JSON of gatehouse.v1.BudgetService, limited to the fields that the command shows; int64 are
 * strings.
 */
export type UsageJson = {
  readonly since?: string;
  readonly answered: string;
  readonly refused: string;
  readonly reads: string;
  readonly reads_max: string;
  readonly buckets: readonly { readonly reads_max: string; readonly count: string }[];
};
export type RefusedJson = {
  readonly rpc: string;
  readonly tenant_id: string;
  readonly relation: string;
  readonly object_id: string;
  readonly subject: string;
  readonly limit: string;
  readonly batch: boolean;
  readonly request_id: string;
  readonly caller: string;
  readonly refused_at: string;
};
export type BudgetJson = {
  readonly project_id: string;
  readonly effective_max_check_reads: number;
  readonly source: string;
  readonly default_max_check_reads: number;
  readonly lowest_max_check_reads: number;
  readonly usage?: UsageJson;
  readonly refused_questions: readonly RefusedJson[];
};
export type MeasuredJson = {
  readonly ceiling: number;
  readonly questions: readonly {
    readonly question: RefusedJson;
    readonly reads: string;
    readonly exceeded: boolean;
    readonly error: string;
  }[];
};
export type ListedJson = {
  readonly projects: readonly {
    readonly project_id: string;
    readonly budget: number;
    readonly usage: UsageJson;
    readonly reads_p99: string;
  }[];
};
