import type { WorkflowFile } from '../model/ports.ts';
import type { WorkflowInfo, WorkflowInfoError, WorkflowSchedule } from '../model/workflow-info.ts';
import type { FileProblem, Template, Workflow } from '../model/workflow.ts';
import { nextScheduledTime } from './cron.ts';

/** A workflow file as it is listed at `now`, which its schedules count from. */
export function workflowInfo(file: WorkflowFile, now: Date): WorkflowInfo {
  const { name, fileName, filePath, workflow, problems, missing = [] } = file;
  const jobs = [...(workflow?.jobs.values() ?? [])].map((job) => ({
    id: job.key,
    name: plainText(job.name) ?? job.key,
    needs: job.needs,
  }));
  const inputs = workflow?.dispatchInputs;
  const unclear: FileProblem[] = [];
  const schedules = schedulesOf(workflow, now, unclear);
  const warnings = [...missing, ...unclear];
  return {
    name,
    fileName,
    filePath,
    triggers: workflow?.triggers.map(({ event }) => event) ?? triggersOf(file.document),
    jobs,
    ...(inputs === undefined || inputs.size === 0 ? {} : { inputs: Object.fromEntries(inputs) }),
    ...(schedules.length === 0 ? {} : { schedules }),
    ...(problems.length === 0 ? {} : { errors: problems.map(shown) }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.map(shown) }),
  };
}

function shown({ message, line, column, file }: FileProblem): WorkflowInfoError {
  return { message, line, col: column, file };
}

/** A next time that cannot be found is a problem of its file, which keeps no other from being listed. */
function schedulesOf(
  workflow: Workflow | undefined,
  now: Date,
  problems: FileProblem[],
): readonly WorkflowSchedule[] {
  const crons = workflow?.triggers.flatMap((trigger) => trigger.crons ?? []) ?? [];
  return crons.map((schedule) => {
    const { cron, timezone } = schedule;
    try {
      return { cron, timezone, nextAt: nextScheduledTime(schedule, now)?.toISOString() };
    } catch (error) {
      const message = `The next time of '${cron}' cannot be found: ${String(error)}`;
      problems.push({ line: 1, column: 1, message });
      return { cron, timezone };
    }
  });
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
