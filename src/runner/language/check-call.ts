import type { InputType, Template, WorkflowCall } from '../model/workflow.ts';
import type { ProblemList } from './problems.ts';
import type { PendingCall } from './read-jobs.ts';
import { entriesOf, literalText } from './template-access.ts';

/** Checks `with:` and `secrets:` of a calling job against what the called workflow declares. */
export function checkCall(job: PendingCall, call: WorkflowCall, problems: ProblemList): void {
  checkInputs(job, call, problems);
  if (job.secrets !== 'inherit') {
    checkSecrets(job, job.secrets, call, problems);
  }
}

function checkInputs(job: PendingCall, call: WorkflowCall, problems: ProblemList): void {
  const declared = new Map([...call.inputs].map(([name, input]) => [name.toLowerCase(), input]));
  const given = entriesOf(job.with);
  const givenNames = new Set(given.map(({ name }) => name.toLowerCase()));
  for (const [name, input] of call.inputs) {
    if (input.required === true && !givenNames.has(name.toLowerCase())) {
      problems.add(job.usesAt, `Input ${name} is required, but not provided while calling.`);
    }
  }
  for (const { name, value } of given) {
    const input = declared.get(name.toLowerCase());
    if (input === undefined) {
      problems.add(value.at, `Invalid input, ${name} is not defined in the referenced workflow.`);
    } else if (!isOfType(value, input.type)) {
      problems.add(value.at, `Unexpected value '${literalText(value) ?? ''}'`);
    }
  }
}

function isOfType(template: Template, type: InputType | undefined): boolean {
  const isTyped = type === 'boolean' || type === 'number';
  return template.kind !== 'literal' || !isTyped || typeof template.value === type;
}

function checkSecrets(
  job: PendingCall,
  secrets: Template | undefined,
  call: WorkflowCall,
  problems: ProblemList,
): void {
  const declared = new Set([...call.secrets.keys()].map((name) => name.toLowerCase()));
  const given = entriesOf(secrets);
  const givenNames = new Set(given.map(({ name }) => name.toLowerCase()));
  for (const [name, { required }] of call.secrets) {
    if (required && !givenNames.has(name.toLowerCase())) {
      problems.add(job.usesAt, `Secret ${name} is required, but not provided while calling.`);
    }
  }
  for (const { name, value } of given) {
    if (!declared.has(name.toLowerCase())) {
      problems.add(value.at, `Invalid secret, ${name} is not defined in the referenced workflow.`);
    }
  }
}
