import { usage } from '../../command-line/parse-words.ts';
import { call } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { connectionOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { integerOfOption, type JsonRecord } from '../core/json-values.ts';
import { showAnswer, showRows } from '../core/rows.ts';
import { assertNoWords, wordsOf } from './words.ts';

/** `workspace.v1.Project` as JSON. */
type ProjectJson = {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly model_json: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly data_region: string;
  readonly max_check_reads: number;
  readonly refuse_unknown_relations?: boolean;
};
type ProjectAnswer = { readonly project: ProjectJson };

const SERVICE = 'workspace.v1.AdminService';
const READS_MAX = 1_000_000_000;
const STATUSES: Readonly<Record<string, string>> = {
  active: 'PROJECT_STATUS_ACTIVE',
  suspended: 'PROJECT_STATUS_SUSPENDED',
};

/** `project list`. Errors: those of `connectionOf` and `call`, for all commands of this file. */
export async function listProjects(line: CliLine): Promise<number> {
  assertNoWords(line);
  const { projects = [] } = await call<{ readonly projects?: readonly ProjectJson[] }>(
    await connectionOf(line),
    `${SERVICE}/ListProjects`,
    {},
  );
  const columns = ['id', 'name', 'status', 'region', 'reads', 'model'];
  showRows(line, projects, columns, (project) => [
    project.id,
    project.name,
    statusText(project),
    project.data_region,
    project.max_check_reads === 0 ? '' : String(project.max_check_reads),
    modelText(project),
  ]);
  return EXIT_OK;
}

/** `project get`. */
export async function getProject(line: CliLine): Promise<number> {
  const [id] = wordsOf(line, ['a project']);
  return await show(line, 'GetProject', { id });
}

/** `project create`. Errors: also INVALID_REQUEST naming the option. */
export async function createProject(line: CliLine): Promise<number> {
  const [id] = wordsOf(line, ['a project']);
  return await show(line, 'CreateProject', { id, name: id, ...fieldsOf(line) });
}

/** `project update`. Errors: also INVALID_REQUEST naming the option. */
export async function updateProject(line: CliLine): Promise<number> {
  const [id] = wordsOf(line, ['a project']);
  const status = line.text('status');
  if (status !== undefined && !Object.hasOwn(STATUSES, status)) {
    throw usage(`--status: must be ${Object.keys(STATUSES).join(' or ')}, not ${status}`);
  }
  const change: JsonRecord = {
    ...fieldsOf(line),
    ...(status === undefined ? {} : { status: STATUSES[status] }),
    ...clearedBy(line, 'data-region', 'clear_data_region'),
    ...clearedBy(line, 'max-check-reads', 'clear_max_check_reads'),
  };
  if (Object.keys(change).length === 0) throw usage('give what is to change, such as --name');
  return await show(line, 'UpdateProject', { id, ...change });
}

function clearedBy(line: CliLine, option: string, field: string): JsonRecord {
  if (!line.isSet(`clear-${option}`)) return {};
  if (line.text(option) !== undefined) throw usage(`give one of --${option}, --clear-${option}`);
  return { [field]: true };
}

function fieldsOf(line: CliLine): JsonRecord {
  const reads = integerOfOption('max-check-reads', line.text('max-check-reads'), 1, READS_MAX);
  const refuses = line.text('refuse-unknown-relations');
  if (refuses !== undefined && refuses !== 'true' && refuses !== 'false') {
    throw usage('--refuse-unknown-relations: must be true or false');
  }
  return {
    ...textField(line, 'name', 'name'),
    ...textField(line, 'data-region', 'data_region'),
    ...(reads === undefined ? {} : { max_check_reads: reads }),
    ...(refuses === undefined ? {} : { refuse_unknown_relations: refuses === 'true' }),
  };
}

function textField(line: CliLine, option: string, field: string): JsonRecord {
  const text = line.text(option);
  // An empty one would change nothing, but report success.
  if (text === '') throw usage(`--${option}: must not be empty`);
  return text === undefined ? {} : { [field]: text };
}

async function show(line: CliLine, method: string, body: JsonRecord): Promise<number> {
  const { project } = await call<ProjectAnswer>(
    await connectionOf(line),
    `${SERVICE}/${method}`,
    body,
  );
  showAnswer(line, project, projectText);
  return EXIT_OK;
}

function projectText(project: ProjectJson): readonly string[] {
  const { max_check_reads: reads, refuse_unknown_relations: refuses = false } = project;
  return [
    `id: ${project.id}`,
    `name: ${project.name}`,
    `status: ${statusText(project)}`,
    `model: ${modelText(project)}`,
    `region: ${project.data_region || 'any'}`,
    `read budget: ${reads === 0 ? 'the default' : reads}`,
    `unknown relations: ${refuses ? 'refused' : 'admitted'}`,
    `created: ${project.created_at}`,
    `updated: ${project.updated_at}`,
  ];
}

function statusText({ status }: ProjectJson): string {
  return Object.keys(STATUSES).find((name) => STATUSES[name] === status) ?? status;
}

function modelText({ model_json: json }: ProjectJson): string {
  return json === '' ? 'built-in' : 'its own';
}
