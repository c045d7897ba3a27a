import { usage } from '../../command-line/parse-words.ts';
import type { Screens, Terminal } from '../../command-line/terminal.ts';
import type { NeededAction } from '../model/run.ts';
import type { CommandLine } from './arguments.ts';
import type { CliContext } from './connect.ts';
import type { ActionLink, ActionNeeds } from './runner-link.ts';

const COMMIT_CHARACTERS = 12;
const EXIT_FAILURE = 1;

/**
 * `runner actions list|fetch|prune`: works on the project's files, whether or not a runner serves it.
 * Exit code 1 when something is missing. Errors: AppErrors for people.
 */
export async function runActionsCommand(
  line: CommandLine,
  context: CliContext,
  screens: Screens,
): Promise<number> {
  const [action, workflow, ...rest] = line.words;
  if (action === undefined || !['list', 'fetch', 'prune'].includes(action)) {
    throw usage('actions needs list, fetch or prune');
  }
  if (rest.length > 0) throw usage('actions: too many arguments');
  if (action === 'prune' && workflow !== undefined) {
    throw usage('actions prune takes no workflow: it keeps what any of them uses');
  }
  if (line.isUpdate && action !== 'fetch') throw usage('--update is an option of fetch');
  const link = await context.local.openActions(context);
  if (action === 'prune') return await prune(link, screens.output);
  const needs =
    action === 'fetch' ? await link.fetch(workflow, line.isUpdate) : await link.needs(workflow);
  show(needs, line, screens);
  if (action === 'list' && workflow === undefined && !line.isJson) showUnused(link, needs, screens);
  return needs.actions.some(({ source }) => source === 'missing') ? EXIT_FAILURE : 0;
}

async function prune(link: ActionLink, output: Terminal): Promise<number> {
  const gone = await link.prune();
  for (const name of gone) output.line(`Removed ${output.foreign(name)}`);
  if (gone.length === 0) output.line('Nothing was fetched that no workflow uses.');
  return 0;
}

function show({ actions, problems }: ActionNeeds, line: CommandLine, screens: Screens): void {
  const { output, notes } = screens;
  if (actions.length === 0 && !line.isJson) {
    output.line('The workflows use no actions of other repositories.');
  }
  const width = Math.max(0, ...actions.map(({ name }) => name.length));
  for (const one of actions) {
    output.line(line.isJson ? JSON.stringify(one) : textOf(one, width, output));
  }
  for (const problem of problems) {
    notes.line(`${notes.paint('error:', 'red')} ${notes.foreign(problem)}`);
  }
}

function textOf({ name, source, commit }: NeededAction, width: number, output: Terminal): string {
  const mark = source === 'missing' ? output.paint('✗', 'red') : output.paint('✓', 'green');
  const at = commit === undefined ? '' : ` ${commit.slice(0, COMMIT_CHARACTERS)}`;
  return `${mark} ${output.foreign(name.padEnd(width))}  ${output.paint(`${source}${at}`, 'dim')}`;
}

function showUnused(link: ActionLink, { actions }: ActionNeeds, { output }: Screens): void {
  const used = new Set(actions.map(({ name }) => name));
  for (const name of link.names().filter((one) => !used.has(one))) {
    output.line(output.paint(`- ${output.foreign(name)}  not used`, 'dim'));
  }
}
