/**
 * Read budgets of projects: npm run budget [-- PROJECT] [--url http://HOST:8080]... [--ceiling READS] [--set READS | --clear]
 * Without a project: which ones were refused most, or read most. With one: its budget, what its evaluations took, and a
 * budget that fits, for which refused questions are evaluated again. --set and --clear change the budget.
 * Takes the settings of the service: its port, where no URL is given, its token and the operator secret. Figures are those
 * of the instances that are asked, since they were started. Ends with 2 when one cannot be asked.
 */
import { parseArgs } from 'node:util';
import type { BudgetJson, ListedJson, MeasuredJson } from './budget/budget-json.ts';
import { listLines, projectLines } from './budget/budget-report.ts';
import { callInstance, type Instance, instancesOf } from './instances.ts';

const SERVICE = '/gatehouse.v1.BudgetService';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string', multiple: true },
    ceiling: { type: 'string' },
    set: { type: 'string' },
    clear: { type: 'boolean' },
  },
});
/** Errors: throws for what is no number. */
function readsOf(option: 'ceiling' | 'set'): number {
  const text = values[option] ?? '0';
  if (!/^\d{1,10}$/.test(text)) throw new Error(`--${option}: ${text} is no number of reads`);
  return Number(text);
}

async function run(): Promise<readonly string[]> {
  const instances = instancesOf(values.url);
  const [projectId, ...more] = positionals;
  if (more.length > 0) throw new Error('name one project');
  if (projectId === undefined) {
    const ask = (instance: Instance): Promise<ListedJson> =>
      callInstance(instance, `${SERVICE}/ListReadUsage`, {});
    return listLines(await Promise.all(instances.map(ask)));
  }
  const [first] = instances;
  if (first !== undefined && (values.set !== undefined || values.clear === true)) {
    const change =
      values.clear === true ? { clear_max_check_reads: true } : { max_check_reads: readsOf('set') };
    const path = '/workspace.v1.AdminService/UpdateProject';
    await callInstance(first, path, { id: projectId, ...change });
  }
  const body = { project_id: projectId };
  const budgets: BudgetJson[] = [];
  const measured: MeasuredJson[] = [];
  for (const instance of instances) {
    const path = `${SERVICE}/MeasureRefusedQuestions`;
    const asked = { ...body, ceiling: readsOf('ceiling') };
    measured.push(await callInstance<MeasuredJson>(instance, path, asked));
    budgets.push(await callInstance<BudgetJson>(instance, `${SERVICE}/GetReadBudget`, body));
  }
  return projectLines({ budgets, measured });
}

try {
  process.stdout.write(`${(await run()).join('\n')}\n`);
} catch (error) {
  const cause =
    error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
  process.stderr.write(
    `budget: ${error instanceof Error ? error.message : String(error)}${cause}\n`,
  );
  process.exitCode = 2;
}
