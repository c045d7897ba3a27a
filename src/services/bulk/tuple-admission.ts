import { problemOfCondition } from '../../model/conditions/condition-admission.ts';
import type { ConditionDeclarations } from '../../model/conditions/model-conditions.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { RelationTuple, ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import type { AppError } from '../../shared/app-error.ts';
import { refusalOfUnknown } from '../tuples/unknown-inserts.ts';
import { NO_RULES, type ProjectRules, refusalOfTuple } from '../writes/write-rules.ts';
import type { BulkParts } from './bulk-ports.ts';

const NO_CONDITIONS: ConditionDeclarations = new Map();

/** Checks the tuples of one stream against the rules of their project. */
export class TupleAdmission {
  readonly #parts: Pick<BulkParts, 'rules' | 'onUndecidable'>;
  readonly #projectId: string;
  #rules: ProjectRules = NO_RULES;
  #conditions = NO_CONDITIONS;
  #isMixed = false;

  constructor(parts: Pick<BulkParts, 'rules' | 'onUndecidable'>, projectId: string) {
    this.#parts = parts;
    this.#projectId = projectId;
  }

  /** Version of the rules that all tuples fit; -1: none, since the rules changed on the way. */
  get version(): number {
    return this.#isMixed ? -1 : this.#rules.version;
  }

  /** Before the first tuple. Errors: those of WriteRules. */
  async begin(): Promise<void> {
    this.#use(await this.#parts.rules.of(this.#projectId));
  }

  /** Whether a tuple fits the known rules. Hot: without rules, only its condition is checked. */
  admits(tuple: RelationTuple): boolean {
    if (tuple.conditionName !== undefined) this.#countUndecidable(tuple);
    return refusalOfImported(this.#rules, tuple, '') === undefined;
  }

  /**
   * Checks a tuple that did not fit the known rules against fresh ones. Errors: TUPLE_NOT_ADMITTED
   * and RELATION_UNKNOWN, with `at` before its field.
   */
  async checkAnew(tuple: RelationTuple, at: string): Promise<void> {
    const now = await this.#parts.rules.fresh(this.#projectId);
    this.#isMixed ||= now.version !== this.#rules.version;
    this.#use(now);
    const refusal = refusalOfImported(now, tuple, at);
    if (refusal !== undefined) throw refusal;
  }

  #use(rules: ProjectRules): void {
    this.#rules = rules;
    this.#conditions = rules.models[0]?.conditions ?? NO_CONDITIONS;
  }

  #countUndecidable(tuple: RelationTuple): void {
    const problem = problemOfCondition(this.#conditions, tuple);
    if (problem !== undefined) this.#parts.onUndecidable(problem.field);
  }
}

/** The refusal of a tuple of an import, which `at` names in messages, or undefined. */
export function refusalOfImported(
  rules: ProjectRules,
  tuple: RelationTuple,
  at: string,
): AppError<AuthzReason> | undefined {
  return refusalOfUnknown(rules, tuple, at) ?? refusalOfTuple(rules, tuple, at);
}

/** Counts those of a write that was done. */
export function countUndecidable(
  { rules, onUndecidable }: Pick<BulkParts, 'rules' | 'onUndecidable'>,
  { projectId }: ShardKey,
  updates: readonly TupleChange[],
): void {
  const conditions = rules.peek(projectId)?.models[0]?.conditions ?? NO_CONDITIONS;
  for (const { op, tuple } of updates) {
    if (op === 'delete') continue;
    const problem = problemOfCondition(conditions, tuple);
    if (problem !== undefined) onUndecidable(problem.field);
  }
}
