import { AppError } from '../../shared/app-error.ts';
import { workflowInfo } from '../language/workflow-info.ts';
import type { WorkflowCatalog, WorkflowFile } from '../model/ports.ts';
import type { WorkflowInfo } from '../model/workflow-info.ts';
import { jsonAnswer } from './answer.ts';
import { parameterOf } from './call.ts';
import type { ApiRoute } from './router.ts';

export function workflowRoutes(catalog: WorkflowCatalog): readonly ApiRoute[] {
  return [
    {
      method: 'GET',
      pattern: '/api/workflows',
      handle: async () => jsonAnswer(200, await infosOf(catalog), [], true),
    },
    {
      method: 'GET',
      pattern: '/api/workflows/:name',
      handle: async (call) => {
        const file = await catalog.find(parameterOf(call, 'name'));
        if (file.document === undefined) throw unreadable(file);
        const info = workflowInfo(file, new Date());
        return jsonAnswer(200, { info, definition: file.document }, [], true);
      },
    },
  ];
}

async function infosOf(catalog: WorkflowCatalog): Promise<readonly WorkflowInfo[]> {
  const now = new Date();
  return (await catalog.list()).map((file) => workflowInfo(file, now));
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
