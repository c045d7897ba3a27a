import type {
  BudgetJson,
  ListedJson,
  MeasuredJson,
  RefusedJson,
  UsageJson,
} from './budget-json.ts';
import { suggestBudget, type Suggestion } from './suggest-budget.ts';

/** Answers of several instances about one project. */
export type ProjectReport = {
  readonly budgets: readonly BudgetJson[];
  readonly measured: readonly MeasuredJson[];
};

type Merged = {
  readonly answered: number;
  readonly refused: number;
  readonly reads: number;
  readonly readsMax: number;
  readonly since: string;
  /** Ascending. */
  readonly buckets: readonly (readonly [readsMax: number, count: number])[];
};

/** The combined usages of all instances. */
export function mergeUsages(usages: readonly UsageJson[]): Merged {
  const buckets = new Map<number, number>();
  for (const { reads_max: readsMax, count } of usages.flatMap((usage) => usage.buckets)) {
    buckets.set(Number(readsMax), (buckets.get(Number(readsMax)) ?? 0) + Number(count));
  }
  const sum = (of: (usage: UsageJson) => string): number =>
    usages.reduce((total, usage) => total + Number(of(usage)), 0);
  return {
    answered: sum((usage) => usage.answered),
    refused: sum((usage) => usage.refused),
    reads: sum((usage) => usage.reads),
    readsMax: Math.max(0, ...usages.map((usage) => Number(usage.reads_max))),
    since: usages.flatMap(({ since }) => since ?? []).toSorted()[0] ?? '',
    buckets: [...buckets].toSorted(([a], [b]) => a - b),
  };
}

/**
 * Reads within which the share `part` of the answered evaluations stayed, at most those of the
 * largest one.
 */
export function quantile({ buckets, answered, readsMax }: Merged, part: number): number {
  let seen = 0;
  for (const [bound, count] of buckets) {
    seen += count;
    if (seen >= part * answered) return Math.min(bound, readsMax);
  }
  return 0;
}

/** The suggestion for a project. */
export function suggestionOf({ budgets, measured }: ProjectReport): Suggestion {
  const [first] = budgets;
  if (first === undefined) throw new Error('no instance answered');
  const { answered, readsMax, refused } = mergeUsages(budgets.flatMap(({ usage }) => usage ?? []));
  const questions = measured.flatMap((one) => one.questions).filter(({ error }) => error === '');
  return suggestBudget({
    effective: first.effective_max_check_reads,
    lowest: first.lowest_max_check_reads,
    answered,
    readsMax,
    refused,
    measured: questions.map(({ reads, exceeded }) => ({ reads: Number(reads), exceeded })),
  });
}

/** The lines for one project. */
export function projectLines(report: ProjectReport): readonly string[] {
  const { budgets, measured } = report;
  const [first] = budgets;
  if (first === undefined) throw new Error('no instance answered');
  const usage = mergeUsages(budgets.flatMap((one) => one.usage ?? []));
  const isOwn = first.source === 'READ_BUDGET_SOURCE_PROJECT';
  const from = isOwn ? `its own; the default is ${first.default_max_check_reads}` : 'the default';
  const lines = [
    `project ${first.project_id}: budget ${first.effective_max_check_reads} reads (${from})`,
  ];
  const instances = budgets.length === 1 ? '' : ` on ${budgets.length} instances`;
  const since = usage.since === '' ? '' : ` since ${usage.since}`;
  lines.push(
    `evaluations${since}${instances}: ${usage.answered} answered, ${usage.refused} refused`,
  );
  if (usage.answered > 0) {
    const at = (part: number): number => quantile(usage, part);
    lines.push(
      `reads of answered ones: p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}, max ${usage.readsMax}`,
    );
  }
  const questions = measured.flatMap((one) => one.questions);
  if (questions.length > 0)
    lines.push('refused questions, evaluated again with nothing remembered:');
  for (const { question, reads, exceeded, error } of questions) {
    const took = exceeded ? `more than ${measured[0]?.ceiling ?? 0} reads` : `${reads} reads`;
    lines.push(`  ${error === '' ? took : error}: ${questionText(question)}`);
  }
  const others = budgets.flatMap((one) => one.refused_questions).filter(isUnmeasured(questions));
  if (others.length > 0) lines.push('refused, and not to be asked again by themselves:');
  for (const question of others) lines.push(`  ${questionText(question)}`);
  const listed = questions.length + others.length;
  const unlisted = usage.refused - listed;
  if (unlisted > 0) {
    lines.push(
      `${listed} of ${usage.refused} refused questions are listed: the other ${unlisted} are not remembered by the service, which keeps the latest ones`,
    );
  }
  const { verdict, budget, why } = suggestionOf(report);
  lines.push(`suggestion: ${verdict}${budget === undefined ? '' : ` ${budget}`} (${why})`);
  if (budget !== undefined && verdict !== 'keep') {
    lines.push(`to set it: gatehouse budget ${first.project_id} --set ${budget}`);
  }
  return lines;
}

function isUnmeasured(questions: MeasuredJson['questions']): (question: RefusedJson) => boolean {
  const known = new Set(questions.map(({ question }) => JSON.stringify(question)));
  return (question) => !known.has(JSON.stringify(question));
}

function questionText(question: RefusedJson): string {
  const { rpc, tenant_id: tenant, relation, object_id: object, subject, limit, batch } = question;
  const whole = batch ? ' of the batch' : '';
  const parts = [`${rpc} ${relation}`];
  if (object !== '') parts.push(`object ${object}`);
  if (subject !== '') parts.push(subject);
  parts.push(
    `tenant "${tenant}"`,
    `limit ${limit}${whole}`,
    `request ${question.request_id || '-'}`,
  );
  if (question.caller !== '') parts.push(`caller ${question.caller}`);
  return parts.join(', ');
}

/** A line for each project that was refused or read most, over all instances. */
export function listLines(lists: readonly ListedJson[]): readonly string[] {
  const merged = new Map<string, { refused: number; reads: number; p99: number; budget: number }>();
  for (const { project_id: id, budget, usage, reads_p99: p99 } of lists.flatMap(
    (one) => one.projects,
  )) {
    const known = merged.get(id) ?? { refused: 0, reads: 0, p99: 0, budget };
    merged.set(id, {
      refused: known.refused + Number(usage.refused),
      reads: known.reads + Number(usage.reads),
      p99: Math.max(known.p99, Number(p99)),
      budget,
    });
  }
  const rows = [...merged].toSorted(([, a], [, b]) => b.refused - a.refused || b.reads - a.reads);
  return [
    ['refused', 'reads', 'p99', 'budget', 'project'],
    ...rows.map(([id, { refused, reads, p99, budget }]) => [refused, reads, p99, budget, id]),
  ].map(([refused, reads, p99, budget, id]) =>
    [pad(refused, 10), pad(reads, 14), pad(p99, 10), pad(budget, 10), id].join('  '),
  );
}

function pad(value: unknown, width: number): string {
  return String(value).padStart(width);
}
