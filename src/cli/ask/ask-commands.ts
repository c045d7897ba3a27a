import type { CommandTable } from '../core/command.ts';
import { JSON_OUTPUT, READ, ROWS_OUTPUT, TENANT } from '../core/options.ts';

const QUESTION = 'namespace:object#relation@subject, such as doc:plan#viewer@user:ann';
const EXIT_NOTES = `exit codes: 0 allowed; 1 denied; 2 the command is wrong, or what it names; 3 denied, for want of an input;
4 no answer. Of several questions the worst counts. An error is never 0.`;
const LIST_NOTES = `exit codes: 0 complete; 2 the command is wrong, or what it names; 3 something could not be decided, and is
left out; 4 no answer: what was printed is not all`;

/** Commands that query permissions. */
export const ASK: CommandTable = {
  check: {
    summary: 'Asks whether a subject holds a relation on an object.',
    usage: ['check <question>… [options]', 'check --file FILE [options]'],
    words: { '<question>': QUESTION },
    options: {
      file: { value: 'FILE', help: ['questions, one a line; - is the standard input'] },
      ...READ,
      ...JSON_OUTPUT,
      ...TENANT,
    },
    notes: `Several questions are answered at one revision.\n${EXIT_NOTES}`,
    examples: [
      'gatehouse check doc:plan#viewer@user:ann && echo come in',
      `gatehouse check doc:plan#viewer@user:ann --input '{"ip":"10.1.2.3"}'`,
      'gatehouse check doc:plan#viewer@group:eng#member --exact -t acme',
    ],
    load: async () => (await import('./check.ts')).check,
  },
  explain: {
    summary: 'Says why a subject holds a relation, or why not and what would help.',
    usage: ['explain <question> [options]'],
    words: { '<question>': QUESTION },
    options: {
      remedies: { value: 'N', help: ['at most so many tuples that would help; default 10'] },
      ...READ,
      ...JSON_OUTPUT,
      ...TENANT,
    },
    notes: EXIT_NOTES,
    examples: ['gatehouse explain doc:plan#viewer@user:bob'],
    load: async () => (await import('./explain.ts')).explain,
  },
  list: {
    summary: 'Lists the objects on which a subject holds a relation.',
    usage: ['list <namespace>#<relation>@<subject> [options]'],
    words: { '<subject>': 'user:ann, group:eng#member' },
    options: {
      limit: { value: 'N', help: ['at most so many'] },
      ...READ,
      ...ROWS_OUTPUT,
      ...TENANT,
    },
    notes: LIST_NOTES,
    examples: ['gatehouse list doc#viewer@user:ann', 'gatehouse list doc#viewer@user:ann --jsonl'],
    load: async () => (await import('./list.ts')).listObjects,
  },
  subjects: {
    summary: 'Lists who holds a relation on an object.',
    usage: ['subjects <namespace>:<object>#<relation> [options]'],
    words: {},
    options: {
      of: {
        value: 'TYPE',
        help: ['objects of a namespace (group) or its usersets (group#member)', 'instead of users'],
      },
      limit: { value: 'N', help: ['at most so many'] },
      ...READ,
      ...ROWS_OUTPUT,
      ...TENANT,
    },
    notes: `user:* is everybody who is not listed as excluded.\n${LIST_NOTES}`,
    examples: [
      'gatehouse subjects doc:plan#viewer',
      'gatehouse subjects doc:plan#viewer --of group#member',
    ],
    load: async () => (await import('./list.ts')).listSubjects,
  },
};
