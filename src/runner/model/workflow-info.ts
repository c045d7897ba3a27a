import type { WorkflowFile } from './ports.ts';
import type { Template, WorkflowInput } from './workflow.ts';

/** A problem of a workflow file as the wire shows it. */
export type WorkflowInfoError = {
  readonly message: string;
  readonly line: number;
  readonly col: number;
  readonly file?: string | undefined;
};

/** WorkflowInfo of the contract; `errors` only where there are some. */
export type WorkflowInfo = {
  readonly name: string;
  readonly fileName: string;
  /** Absolute. */
  readonly filePath: string;
  readonly triggers: readonly string[];
  readonly jobs: readonly {
    readonly id: string;
    readonly name: string;
    readonly needs: readonly string[];
  }[];
  readonly inputs?: Readonly<Record<string, WorkflowInput>>;
  readonly errors?: readonly WorkflowInfoError[];
};

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
