import { expect } from 'vitest';
import {
  type ReadLimits,
  type WorkflowReading,
  readWorkflow,
} from '../../../src/runner/language/read-workflow.ts';
import type { Workflow, WorkflowSource } from '../../../src/runner/model/workflow.ts';

const source = (text: string, path = '.github/workflows/a.yml'): WorkflowSource => ({
  text,
  fileName: 'a.yml',
  path,
});

/** Reads a workflow; `called` are those that it calls, by `uses`. */
export async function read(
  text: string,
  called: Readonly<Record<string, string>> = {},
  limits?: ReadLimits,
): Promise<WorkflowReading> {
  return await readWorkflow(
    source(text),
    async (uses) => {
      const found = called[uses];
      return await Promise.resolve(found === undefined ? undefined : source(found, uses.slice(2)));
    },
    limits,
  );
}

/** Reads one without problems. */
export async function mustRead(
  text: string,
  called?: Readonly<Record<string, string>>,
): Promise<Workflow> {
  const { workflow, problems } = await read(text, called);
  expect(problems).toEqual([]);
  if (workflow === undefined) {
    throw new Error('no workflow');
  }
  return workflow;
}

/** `line:column message` of each problem. */
export async function problemsOf(
  text: string,
  called?: Readonly<Record<string, string>>,
  limits?: ReadLimits,
): Promise<readonly string[]> {
  const { problems, workflow } = await read(text, called, limits);
  expect(workflow === undefined).toBe(problems.length > 0);
  return problems.map(
    ({ line, column, message, file }) =>
      `${file === undefined ? '' : `${file} `}${line}:${column} ${message}`,
  );
}
