import type { CommandTable } from '../core/command.ts';
import { JSON_OUTPUT, PROJECT, ROWS_OUTPUT } from '../core/options.ts';

const EXIT_WRITE = `exit codes: 0 it is in force, or pending with --no-wait; 1 stored tuples do not fit, or another version came;
2 the command is wrong, or the model is refused; 4 no answer, or not in force in time`;

/** Options of commands that write a version. */
const WRITE = {
  'expected-version': {
    value: 'N',
    help: ['refused unless this is the newest version (model history)'],
  },
  comment: { value: 'TEXT', help: ['why, for the history; at most 1,000 characters'] },
  force: {
    help: ['into force although stored tuples do not fit: they are passed over'],
  },
  'no-wait': { help: ['does not wait until the version is in force'] },
  'wait-max': { value: 'SECONDS', help: ['waits so long at most; default 600'] },
  ...JSON_OUTPUT,
  ...PROJECT,
} as const;

/**
 * Commands about the versions of a project's model. All need the operator secret except `model
 * diff` of two files.
 */
export const MODEL_VERSIONS: CommandTable = {
  'model diff': {
    summary: 'Says what differs between two models, or between the one in force and a file.',
    usage: ['model diff FILE', 'model diff OLD NEW'],
    words: {
      FILE: '.gate or JSON, compared with the model in force of the project',
      'OLD NEW': 'two files; none needs a service',
    },
    options: { ...JSON_OUTPUT, ...PROJECT },
    notes: `A line for each namespace, relation and condition: + it came, - it went, ~ it changed. The order of subjects, and of
operands of \`or\` and \`and\`, is no difference. exit codes: 0 the same; 1 they differ; 2 the command or a file is
wrong; 4 no answer`,
    examples: ['gatehouse model diff old.gate new.gate', 'gatehouse model diff -p atlas new.gate'],
    load: async () => (await import('./diff.ts')).diffModels,
  },
  'model apply': {
    summary: 'Writes a model as the newest version of a project, and waits until it is in force.',
    usage: ['model apply FILE [options]'],
    words: { FILE: '.gate or JSON; - is the standard input' },
    options: {
      'dry-run': { help: ['says what would happen, and changes nothing'] },
      tests: {
        value: 'FILE',
        isMultiple: true,
        help: ['assertions that must hold first; repeatable'],
      },
      'refuse-new-allows': { help: ['refused if a sampled deny would become an allow'] },
      'refuse-new-denies': { help: ['refused if a sampled allow would become a deny'] },
      sampled: {
        value: 'N',
        help: ['of both: how many are drawn from the tuples of the tenant; default 10000'],
      },
      tenant: { short: 't', value: 'ID', help: ['of both: the tenant; default: of the context'] },
      ...WRITE,
    },
    notes: EXIT_WRITE,
    examples: [
      'gatehouse model apply --dry-run model.gate',
      'gatehouse model apply --dry-run --refuse-new-allows --sampled 1000 model.gate',
      'gatehouse model apply --expected-version 3 --comment "editors view" --tests model.yaml model.gate',
    ],
    load: async () => (await import('./apply.ts')).applyModel,
  },
  'model history': {
    summary: 'Lists the versions of the model of a project, the newest first.',
    usage: ['model history [options]'],
    words: {},
    options: {
      limit: { value: 'N', help: ['the newest N; default 100'] },
      ...ROWS_OUTPUT,
      ...PROJECT,
    },
    examples: ['gatehouse model history -p atlas --limit 10'],
    load: async () => (await import('./history.ts')).listVersions,
  },
  'model show': {
    summary: 'Prints the model in force of a project, or another version, as .gate.',
    usage: ['model show [VERSION] [options]'],
    words: { VERSION: 'a number; default: the one in force' },
    options: {
      out: { value: 'FILE', help: ['where to; default: the standard output'] },
      ...JSON_OUTPUT,
      ...PROJECT,
    },
    examples: ['gatehouse model show > model.gate', 'gatehouse model show 3 --json'],
    load: async () => (await import('./history.ts')).showVersion,
  },
  'model roll-back': {
    summary: 'Writes the model of an earlier version anew, and waits until it is in force.',
    usage: ['model roll-back VERSION [options]'],
    words: { VERSION: 'a number; previous: the one that decided before the one in force' },
    options: WRITE,
    notes: EXIT_WRITE,
    examples: [
      'gatehouse model roll-back 3 --comment "lets too many in"',
      'gatehouse model roll-back previous',
    ],
    load: async () => (await import('./apply.ts')).rollBackModel,
  },
};
