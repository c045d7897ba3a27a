import { text as readAll } from 'node:stream/consumers';
import { usage } from '../../command-line/parse-words.ts';
import type { Screens, Terminal } from '../../command-line/terminal.ts';
import { AppError } from '../../shared/app-error.ts';
import type { StartRequest } from '../model/ports.ts';
import type { WorkflowRun } from '../model/run.ts';
import { RUNNER_OPTIONS } from '../settings/settings.ts';
import { durationText } from '../text/duration.ts';
import type { CommandLine } from './arguments.ts';
import type { CliContext } from './connect.ts';
import { followRun } from './follow-run.ts';
import { RunPrinter } from './run-printer.ts';
import type { RunReader, SecretLocation } from './runner-link.ts';
import { variablesOf } from './variables.ts';

const RUNS_MAX = 1_000;
/** All of the runner, which wrong arguments, help and lists need not wait for. */
const links = () => import('./connect.ts');

/** Does what the line says; resolves with the exit code. Errors: AppErrors for people. */
export async function runCommand(
  line: CommandLine,
  context: CliContext,
  screens: Screens,
): Promise<number> {
  switch (line.command) {
    case 'run':
      return run(line, context, screens);
    case 'rerun':
      return rerun(line, context, screens);
    case 'list':
      return list(line, context, screens);
    case 'runs':
      return runs(line, context, screens);
    case 'logs':
      return logs(line, context, screens);
    case 'approve':
      return approve(line, context, screens);
    case 'cancel':
      return cancel(line, context, screens);
    case 'secrets':
      return secrets(line, context, screens);
    case 'actions':
      return (await import('./actions-command.ts')).runActionsCommand(line, context, screens);
    case 'serve':
      return serve(line, context);
    case undefined:
      return 0;
  }
}

async function serve(line: CommandLine, context: CliContext): Promise<number> {
  wordsOf(line, 0, 0, '');
  const { local, environment, workspace } = context;
  await local.serve({ ...environment, [RUNNER_OPTIONS.workspace.env]: workspace });
  return 0;
}

async function run(line: CommandLine, context: CliContext, screens: Screens): Promise<number> {
  const { isJson, isQuiet } = line;
  const request = await startOf(line, context, screens);
  if (line.isDryRun) {
    const plan = await context.local.planStart(context, request);
    const { printPlan } = await import('./start-plan.ts');
    if (isJson) screens.output.line(JSON.stringify(plan));
    else printPlan(screens.output, screens.notes, plan);
    return plan.forecast.exitCode;
  }
  const link = await (await links()).connect(context);
  try {
    const options = { link, ...screens, isJson, isQuiet };
    return await followRun(options, () => link.start(request));
  } finally {
    await link.close();
  }
}

/** What the line asks to start. Files are read and questions asked before anybody has the workspace. */
async function startOf(
  line: CommandLine,
  { environment }: CliContext,
  { notes }: Screens,
): Promise<StartRequest> {
  const [workflow] = wordsOf(line, 1, 1, '<workflow>');
  if (workflow === undefined) throw usage('run needs a workflow; `list` shows them');
  const { payloadOf, secretsOf } = await import('./start-values.ts');
  const { inputs, event, strategy, ref, isPushAllowed, isForced, jobs, matrix, vars } = line;
  const sandbox = { strategy, ref, allowPush: isPushAllowed ? true : undefined };
  return {
    workflow,
    inputs,
    sandbox,
    event,
    payload: await payloadOf(line.payload),
    isForced: isForced ? true : undefined,
    jobs: jobs.length === 0 ? undefined : jobs,
    matrix: isEmpty(matrix) ? undefined : matrix,
    secrets: await secretsOf(line, environment, notes),
    variables: isEmpty(vars) ? undefined : vars,
    env: variablesOf(line.variableFiles, line.variables, environment),
  };
}

function isEmpty(record: object): boolean {
  return Object.keys(record).length === 0;
}

async function rerun(line: CommandLine, context: CliContext, screens: Screens): Promise<number> {
  const { isFailedOnly, job, isJson, isQuiet } = line;
  const [name] = wordsOf(line, 0, 1, '<run>');
  if (isFailedOnly && job !== undefined) throw usage('--failed and --job exclude each other');
  const link = await (await links()).connect(context);
  try {
    const { id } = await findRun(link, name);
    const which = { ...(isFailedOnly ? { failedOnly: true } : {}), job };
    return await followRun({ link, ...screens, isJson, isQuiet }, async () => ({
      run: await link.rerun(id, which),
      warnings: [],
    }));
  } finally {
    await link.close();
  }
}

async function list(line: CommandLine, context: CliContext, { output }: Screens): Promise<number> {
  wordsOf(line, 0, 0, '');
  const { createWorkflowCatalog, noWorkflows } =
    await import('../host/project/workflow-catalog.ts');
  const { workflowInfo } = await import('../language/workflow-info.ts');
  const now = new Date();
  const found = await createWorkflowCatalog(context.workspace).list();
  if (found.length === 0) throw noWorkflows(context.workspace);
  const files = await Promise.all(
    found.map(async (file) => ({
      ...workflowInfo(file, now),
      // What cannot be read is refused.
      forecast:
        file.workflow === undefined
          ? { exitCode: 2, problems: [] }
          : await context.local.forecast(context, file.workflow),
    })),
  );
  if (line.isJson) {
    output.line(JSON.stringify(files));
    return 0;
  }
  const width = Math.max(0, ...files.map(({ fileName }) => fileName.length));
  const { forecastLines } = await import('./start-plan.ts');
  for (const { name, fileName, triggers, inputs, schedules = [], errors = [], forecast } of files) {
    const mark = forecast.exitCode === 0 ? output.paint('✓', 'green') : output.paint('✗', 'red');
    const title = name === fileName ? '' : `  ${output.paint(output.foreign(name), 'bold')}`;
    const details = [
      triggers.join(', '),
      ...Object.keys(inputs ?? {}).map((input) => `-i ${input}=`),
    ];
    output.line(
      `${mark} ${output.foreign(fileName.padEnd(width))}${title}  ${output.paint(output.foreign(details.join('  ')), 'dim')}`,
    );
    for (const { cron, timezone, nextAt } of schedules) {
      const next =
        nextAt === undefined ? 'never' : `next ${nextAt.replace('T', ' ').slice(0, 16)} UTC`;
      const zone = timezone === undefined ? '' : ` ${timezone}`;
      output.line(output.paint(output.foreign(`    ${cron}${zone}  ${next}`), 'dim'));
    }
    for (const { message, line: at, col, file } of errors) {
      output.line(
        output.paint(
          `    ${output.foreign(`${file ?? fileName}:${at}:${col}: ${message}`)}`,
          'red',
        ),
      );
    }
    if (errors.length > 0) output.line(output.paint('    A run is refused: exit code 2', 'red'));
    for (const text of forecastLines(forecast)) output.line(`    ${output.foreign(text)}`);
  }
  return 0;
}

async function runs(line: CommandLine, context: CliContext, { output }: Screens): Promise<number> {
  wordsOf(line, 0, 0, '');
  const { limit, status, workflow } = line;
  const reader = await (await links()).connectToRead(context);
  try {
    const found = await reader.list({ limit, status, workflow });
    const printer = new RunPrinter(output, true);
    if (found.length === 0 && !line.isJson) output.line('There are no runs.');
    for (const one of found) {
      output.line(line.isJson ? JSON.stringify(one) : runLine(output, printer, one));
    }
    return 0;
  } finally {
    await reader.close();
  }
}

function runLine(output: Terminal, printer: RunPrinter, one: WorkflowRun): string {
  const time = one.durationMs === undefined ? '' : durationText(one.durationMs);
  const word = (one.conclusion ?? one.status).padEnd(11);
  const when = one.createdAt.replace('T', ' ').slice(0, 19);
  const number = `#${one.runNumber}`.padStart(5);
  const title = output.foreign(`${one.name}  ${one.fileName}`);
  return `${printer.mark(one.conclusion)} ${number}  ${word} ${when}  ${time.padStart(7)}  ${title}  ${output.paint(one.id, 'dim')}`;
}

async function logs(line: CommandLine, context: CliContext, { output }: Screens): Promise<number> {
  const [name] = wordsOf(line, 0, 1, '<run>');
  const { job, step, tail } = line;
  const reader = await (await links()).connectToRead(context);
  try {
    const found = await findRun(reader, name);
    if (job !== undefined && !found.jobs.some(({ id }) => id === job)) {
      throw usage(`--job ${job}: the run has ${found.jobs.map(({ id }) => id).join(', ')}`);
    }
    const query = { jobId: job, stepNumber: step, tail };
    const parts = reader.logs(found.id, query);
    if (output.isLive) await showParts(parts, output);
    // Programs get every byte.
    else for await (const part of parts) process.stdout.write(part);
    return 0;
  } finally {
    await reader.close();
  }
}

/** For a terminal, which applies what a log holds. */
async function showParts(
  parts: AsyncIterable<Uint8Array | string>,
  output: Terminal,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const part of parts) {
    const text = typeof part === 'string' ? part : decoder.decode(part, { stream: true });
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const one of lines) output.line(output.foreign(one));
  }
  if (rest !== '') output.line(output.foreign(rest));
}

async function approve(line: CommandLine, context: CliContext, screens: Screens): Promise<number> {
  // Never the newest by itself: who approves says what.
  const [name] = wordsOf(line, 1, 1, '<run>');
  const link = await (await links()).connectToRunning(context);
  if (link === undefined) {
    const text = 'no runner serves this workspace: start one, it goes on with the run';
    throw new AppError('RUN_NOT_WAITING', text);
  }
  try {
    const { id } = await findRun(link, name);
    await link.approve(id);
    screens.output.line(`Approved ${id}`);
    return 0;
  } finally {
    await link.close();
  }
}

async function cancel(line: CommandLine, context: CliContext, screens: Screens): Promise<number> {
  const [name] = wordsOf(line, 0, 1, '<run>');
  const link = await (await links()).connectToRunning(context);
  if (link === undefined) {
    throw new AppError('RUN_NOT_CANCELLABLE', 'no runner serves this workspace: nothing runs');
  }
  try {
    const { id } = await findRun(link, name);
    await link.cancel(id);
    screens.output.line(`Cancelling ${id}`);
    return 0;
  } finally {
    await link.close();
  }
}

async function secrets(line: CommandLine, context: CliContext, screens: Screens): Promise<number> {
  const [action, name] = wordsOf(line, 1, 2, 'list, set <NAME> or delete <NAME>');
  const { environment, backend } = line;
  if (action === 'list' && name === undefined) {
    const link = await (await links()).connectToSecrets(context);
    try {
      const names = await link.list({ environment, backend });
      for (const one of names) screens.output.line(one);
      if (backend === 'vault' && names.length > 0) {
        const problem = await link.vaultProblem();
        if (problem !== undefined) screens.notes.line(`The values need a key: ${problem}`);
      }
      return 0;
    } finally {
      await link.close();
    }
  }
  if ((action !== 'set' && action !== 'delete') || name === undefined) {
    throw usage('secrets needs list, set <NAME> or delete <NAME>');
  }
  const place: SecretLocation = { name, environment, backend };
  // Read first: nobody waits for the lock of the workspace while a person types.
  const value = action === 'set' ? await valueFromInput(screens.notes) : '';
  const link = await (await links()).connectToSecrets(context);
  try {
    if (action === 'delete') {
      await link.remove(place);
      screens.output.line(`Deleted ${name}`);
      return 0;
    }
    const { isCreated } = await link.put({ ...place, value });
    screens.output.line(`${isCreated ? 'Created' : 'Updated'} ${name}`);
    return 0;
  } finally {
    await link.close();
  }
}

/** All of standard input; a line break at the end, as `echo` writes it, is not part of the value. */
async function valueFromInput(notes: Terminal): Promise<string> {
  if (process.stdin.isTTY) notes.line('Type the value and end it with Ctrl-D:');
  return (await readAll(process.stdin)).replace(/\r?\n$/, '');
}

/** By id, by `github.run_id`, by number (`7`, `#7`, of one workflow `ci#7`), else the newest one. Errors: RUN_NOT_FOUND. */
async function findRun(reader: RunReader, name: string | undefined): Promise<WorkflowRun> {
  const all = await reader.list({ limit: RUNS_MAX });
  const [, workflow = '', number] = /^(?:(.+)?#)?(\d{1,9})$/.exec(name ?? '') ?? [];
  const found = all.find(
    (one) =>
      name === undefined ||
      one.id === name ||
      String(one.numericId) === name ||
      (String(one.runNumber) === number && isOfWorkflow(one, workflow)),
  );
  if (found !== undefined) return found;
  const text = name === undefined ? 'there are no runs' : `there is no run ${name}`;
  throw new AppError('RUN_NOT_FOUND', text);
}

/** By the workflow's name or file; every run is of ''. */
function isOfWorkflow({ workflow, fileName }: WorkflowRun, name: string): boolean {
  const names = ['', workflow, fileName, fileName.replace(/\.ya?ml$/, '')];
  return names.includes(name);
}

function wordsOf(
  { command, words }: CommandLine,
  min: number,
  max: number,
  what: string,
): readonly string[] {
  if (words.length < min) throw usage(`${command} needs ${what}`);
  // What is too many may be the value of a secret.
  if (words.length > max) throw usage(`${command}: too many arguments`);
  return words;
}
