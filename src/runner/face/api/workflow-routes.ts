import { AppError } from '../../../shared/app-error.ts';
import type { WorkflowCatalog, WorkflowFile } from '../../model/ports.ts';
import type { WorkflowInfo } from '../../model/workflow-info.ts';
import type { Template } from '../../model/workflow.ts';
import { jsonAnswer } from './answer.ts';
import { parameterOf } from './call.ts';
import type { Route } from './router.ts';

export function workflowRoutes(catalog: WorkflowCatalog): readonly Route[] {
  return [
    {
      method: 'GET',
      pattern: '/api/workflows',
      handle: async () => jsonAnswer(200, (await catalog.list()).map(workflowInfo), [], true),
    },
    {
      method: 'GET',
      pattern: '/api/workflows/:name',
      handle: async (call) => {
        const file = await catalog.find(parameterOf(call, 'name'));
        if (file.document === undefined) throw unreadable(file);
        return jsonAnswer(200, { info: workflowInfo(file), definition: file.document }, [], true);
      },
    },
  ];
}

/** A workflow file as it is listed. */
export function workflowInfo(file: WorkflowFile): WorkflowInfo {
  const { name, fileName, filePath, workflow, problems } = file;
  const jobs = [...(workflow?.jobs.values() ?? [])].map((job) => ({
    id: job.key,
    name: plainText(job.name) ?? job.key,
    needs: job.needs,
  }));
  const inputs = workflow?.dispatchInputs;
  return {
    name,
    fileName,
    filePath,
    triggers: workflow?.triggers.map(({ event }) => event) ?? triggersOf(file.document),
    jobs,
    ...(inputs === undefined || inputs.size === 0 ? {} : { inputs: Object.fromEntries(inputs) }),
    ...(problems.length === 0
      ? {}
      : {
          errors: problems.map(({ message, line, column, file: other }) => ({
            message,
            line,
            col: column,
            file: other,
          })),
        }),
  };
}

/** A job's name as written; an expression stands as its source, it has no value before a run. */
function plainText(template: Template | undefined): string | undefined {
  if (template === undefined) return undefined;
  if (template.kind === 'literal') return String(template.value);
  return template.kind === 'expression' ? template.source : undefined;
}

/** Event names of an invalid workflow, as far as `on` can be understood. */
function triggersOf(document: unknown): readonly string[] {
  if (typeof document !== 'object' || document === null || !('on' in document)) return [];
  const { on } = document;
  if (typeof on === 'string') return [on];
  if (Array.isArray(on)) return on.filter((entry) => typeof entry === 'string');
  return typeof on === 'object' && on !== null ? Object.keys(on) : [];
}

function unreadable({ fileName, problems }: WorkflowFile): AppError {
  const [first] = problems;
  const place = first === undefined ? '' : ` (line ${first.line}, column ${first.column})`;
  const text = `${fileName} cannot be read: ${first?.message ?? 'it is no YAML'}${place}`;
  const details = Object.fromEntries(
    problems.map((problem, index) => [
      `errors[${index}]`,
      `${problem.line}:${problem.column} ${problem.message}`,
    ]),
  );
  return new AppError('INVALID_WORKFLOW', text, details);
}
