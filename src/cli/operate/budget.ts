import { usage } from '../../command-line/parse-words.ts';
import { call } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { type ServiceConnection, connectionsOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { integerOfOption } from '../core/json-values.ts';
import { showAnswer } from '../core/rows.ts';
import type { BudgetJson, ListedJson, MeasuredJson } from './budget/budget-json.ts';
import { listLines, projectLines, suggestionOf } from './budget/budget-report.ts';
import { answered } from './words.ts';

const SERVICE = 'gatehouse.v1.BudgetService';
const BUDGET_MAX = 1_000_000_000;
const CEILING_MAX = 10_000_000;

/** `budget`. Errors: INVALID_REQUEST; REFUSED if an instance refuses or does not answer. */
export async function runBudget(line: CliLine): Promise<number> {
  const [projectId, ...more] = line.words;
  if (more.length > 0) throw usage('name one project');
  const isChange = line.text('set') !== undefined || line.isSet('clear');
  const isOfProject = isChange || line.text('ceiling') !== undefined;
  if (projectId === undefined && isOfProject) {
    throw usage('--set, --clear and --ceiling are about one project: name it');
  }
  const instances = await connectionsOf(line);
  await answered(() =>
    projectId === undefined ? showAll(line, instances) : showProject(line, instances, projectId),
  );
  return EXIT_OK;
}

async function showAll(line: CliLine, instances: readonly ServiceConnection[]): Promise<void> {
  const lists = await Promise.all(
    instances.map((instance) => call<ListedJson>(instance, `${SERVICE}/ListReadUsage`, {})),
  );
  // One document for each instance, whose figures are separate.
  const ofEach = instances.map(({ url }, i) => ({ url, ...lists[i] }));
  showAnswer(line, ofEach, () => listLines(lists));
}

async function showProject(
  line: CliLine,
  instances: readonly ServiceConnection[],
  projectId: string,
): Promise<void> {
  const set = integerOfOption('set', line.text('set'), 1, BUDGET_MAX);
  const ceiling = integerOfOption('ceiling', line.text('ceiling'), 0, CEILING_MAX) ?? 0;
  if (set !== undefined && line.isSet('clear')) throw usage('give one of --set and --clear');
  const [first] = instances;
  if (first !== undefined && (set !== undefined || line.isSet('clear'))) {
    const change = set === undefined ? { clear_max_check_reads: true } : { max_check_reads: set };
    await call(first, 'workspace.v1.AdminService/UpdateProject', { id: projectId, ...change });
  }
  const budgets: BudgetJson[] = [];
  const measured: MeasuredJson[] = [];
  for (const instance of instances) {
    const body = { project_id: projectId };
    measured.push(await call(instance, `${SERVICE}/MeasureRefusedQuestions`, { ...body, ceiling }));
    budgets.push(await call(instance, `${SERVICE}/GetReadBudget`, body));
  }
  const report = { budgets, measured };
  const ofEach = instances.map(({ url }, i) => ({
    url,
    budget: budgets[i],
    measured: measured[i],
  }));
  const document = { instances: ofEach, suggestion: suggestionOf(report) };
  showAnswer(line, document, () => projectLines(report));
}
