import type { Report, ShardViolation } from './checker/check-history.ts';
import type { Coverage } from './checker/coverage.ts';
import type { History, Operation } from './checker/history.ts';

const NEIGHBOURS_SHOWN = 14;
const BROKEN_SHOWN = 5;

/** A round in one line. */
export function summaryOf(history: History, report: Report): string {
  const { violations, undecided, brokenRules } = report;
  return [
    `${report.operations} operations in ${report.shards} histories`,
    coverageText(report.coverage),
    `${history.disturbances.length} disturbances`,
    `violations ${violations.length + brokenRules.length}, undecided ${undecided.length}`,
  ].join('; ');
}

/** What was covered, in one line. */
export function coverageText(coverage: Coverage): string {
  const { reads, concurrentReads, foreignReads, unknownMutations, mutations } = coverage;
  const percent = (part: number, whole: number): string =>
    `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`;
  return [
    `${reads} reads (${percent(concurrentReads, reads)} beside a relevant write, ${percent(foreignReads, reads)} elsewhere than the last write)`,
    `${mutations} changes (${percent(unknownMutations, mutations)} unknown)`,
    `${coverage.refused} refused`,
  ].join('; ');
}

/** What is wrong, for people: nothing where nothing is. */
export function faultsText(history: History, report: Report): string {
  return [
    ...report.brokenRules
      .slice(0, BROKEN_SHOWN)
      .map(({ rule, operations }) =>
        [`BROKEN: ${rule}`, ...operations.map((one) => `    ${lineOf(history, one)}`)].join('\n'),
      ),
    ...report.violations.map((one) => violationText(history, one)),
    ...report.undecided.map((one) => violationText(history, one)),
  ].join('\n');
}

function violationText(history: History, violation: ShardViolation): string {
  const { project, tenant, verdict, spec, operations } = violation;
  const { operation } = verdict.operation;
  const where = `project ${project}, tenant ${tenant}`;
  if (verdict.kind === 'undecided') {
    return `UNDECIDED (${where}): ${verdict.reason} at\n    ${lineOf(history, operation)}`;
  }
  const near = operations
    .filter((one) => one.called < operation.returned && one !== operation)
    .toSorted((a, b) => a.returned - b.returned)
    .slice(-NEIGHBOURS_SHOWN);
  const candidates = verdict.candidates.map((state) => {
    const { revision, settings } = state;
    const answer = spec.answerIn(state, operation);
    return `    at seq ${revision}, model ${settings.model}${settings.isSuspended ? ', suspended' : ''}: ${answer}`;
  });
  const disturbances = history.disturbances
    .filter(({ atMs }) => atMs < operation.returnedMs)
    .slice(-3)
    .map(({ atMs, text }) => `    ${timeOf(history, atMs)} ${text}`);
  return [
    `VIOLATION (${where}): no order of what happened explains`,
    `    ${lineOf(history, operation)}`,
    '  where it can have been answered only as',
    ...candidates,
    '  after',
    ...near.map((one) => `    ${lineOf(history, one)}`),
    '  while',
    ...disturbances,
  ].join('\n');
}

/** One operation in one line. */
export function lineOf(history: History, operation: Operation): string {
  const { id, client, instance, outcome, calledMs, returnedMs, action, found, error } = operation;
  const time = `${timeOf(history, calledMs)}-${timeOf(history, returnedMs)}`;
  const end = [outcome, found, error].filter((part) => part !== undefined).join(' ');
  return `${time} #${id} client ${client} at ${instance} (${end}): ${actionText(operation)} ${actionEnd(action)}`;
}

function actionText({ action }: Operation): string {
  switch (action.kind) {
    case 'write':
      return `write ${action.updates.map(({ op, tuple }) => `${op === 'insert' ? '+' : '-'}${tuple}`).join(' ')}`;
    case 'deprovision':
      return `deprovision ${action.user}`;
    case 'settings':
      return `settings ${JSON.stringify({ model: action.model, suspended: action.isSuspended })}`;
    case 'failover':
      return `failover from event ${action.syncedAt}`;
    case 'read':
      return `read ${JSON.stringify(action.query)}${action.atLeast === undefined ? '' : ` at least ${action.atLeast.epoch}.${action.atLeast.revision}`}`;
  }
}

function actionEnd(action: Operation['action']): string {
  switch (action.kind) {
    case 'write':
      return action.reached === undefined
        ? ''
        : `→ ${action.reached.epoch}.${action.reached.revision}`;
    case 'deprovision':
      return action.deleted === undefined ? '' : `→ ${action.deleted}`;
    case 'settings':
      return '';
    case 'failover':
      return `→ epoch ${action.epoch}`;
    case 'read':
      return action.answer === undefined ? '' : `→ ${action.answer}`;
  }
}

function timeOf({ startedMs }: History, atMs: number): string {
  return `${((atMs - startedMs) / 1000).toFixed(3)}s`;
}
