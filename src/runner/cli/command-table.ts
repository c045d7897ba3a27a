import type { CliCommand } from '../../command-line/command-help.ts';

const EVERYWHERE = {
  workspace: {
    short: 'w',
    value: 'DIR',
    help: ['the project; default: RUNNER_WORKSPACE, else this directory'],
  },
  help: { short: 'h', help: ['this text'] },
} satisfies CliCommand['options'];

const FOLLOW = {
  quiet: { short: 'q', help: ['results only; of failed steps the last lines'] },
  json: { help: ['one event a line, as GET /api/events sends them, with its type'] },
  ...EVERYWHERE,
} satisfies CliCommand['options'];

const EXIT = `Exit code: 0 success or skipped, 1 failure, 2 wrong arguments, inputs or workflow,
130 cancelled. Ctrl-C cancels the run, a second one kills it.`;

const RUN_WORD = {
  '<run>': 'its id, GITHUB_RUN_ID, number or workflow#number; default: the newest',
};

/**
 * Every command with every option: parsing and help are made from it. A new command or option is a row
 * here, a field of CommandLine, and what it does in commands.ts.
 */
export const COMMAND_TABLE = {
  run: {
    summary: 'Runs a workflow and tells what happens until it ends.',
    usage: ['run <workflow> [options]'],
    words: { '<workflow>': 'file name, with or without extension, or name of the workflow' },
    options: {
      input: {
        short: 'i',
        value: 'NAME=VALUE',
        isMultiple: true,
        help: ['an input, as often as there are inputs'],
      },
      job: {
        short: 'j',
        value: 'JOB',
        isMultiple: true,
        help: ['only this job and those that it needs, as often as there are jobs'],
      },
      matrix: {
        value: 'KEY:VALUE',
        isMultiple: true,
        help: ['only legs of matrices with this value, where they have the key'],
      },
      secret: {
        short: 's',
        value: 'NAME[=VALUE]',
        isMultiple: true,
        help: [
          'a secret of this run alone; without a value that of the environment,',
          'else it is asked for (values in arguments can be seen by others)',
        ],
      },
      'secret-file': { value: 'FILE', help: ['secrets of this run alone, as lines NAME=VALUE'] },
      var: {
        value: 'NAME=VALUE',
        isMultiple: true,
        help: ['a variable of this run alone (the context vars)'],
      },
      env: {
        value: 'NAME[=VALUE]',
        isMultiple: true,
        help: [
          "a variable for all steps, below the workflow's own env; without VALUE",
          'the one of this shell',
        ],
      },
      'env-file': {
        value: 'FILE',
        isMultiple: true,
        help: ['such variables as lines NAME=VALUE; --env wins over them'],
      },
      strategy: {
        value: 'S',
        help: ['where it works: worktree, copy or none (in the project itself)'],
      },
      ref: { value: 'REF', help: ['branch, tag or commit; default: what is there'] },
      'allow-push': {
        help: [
          "git push of its steps goes to the project's remotes; otherwise what",
          'they push stands below refs/runner/ of the project',
        ],
      },
      event: { value: 'NAME', help: ['as if this event had happened; default: workflow_dispatch'] },
      payload: {
        short: 'e',
        value: 'FILE',
        help: ['JSON document of the event, or a part of it; - is standard input'],
      },
      force: { help: ['whatever the triggers of the workflow say'] },
      'dry-run': { short: 'n', help: ['shows what would run, after all checks, and runs nothing'] },
      ...FOLLOW,
    },
    notes: EXIT,
  },
  list: {
    summary: 'Lists the workflows of the project, with what is wrong with them.',
    usage: ['list [options]', '-l [options]'],
    words: {},
    options: { json: { help: ['as GET /api/workflows shows them'] }, ...EVERYWHERE },
  },
  serve: {
    summary: 'Serves the workspace: its page, its API and its schedules, until a signal.',
    usage: ['serve [options]'],
    words: {},
    options: EVERYWHERE,
    notes: 'Settings are the variables RUNNER_*: docs/configuration.md.',
  },
  runs: {
    summary: 'Lists runs, newest first.',
    usage: ['runs [options]'],
    words: {},
    options: {
      status: { value: 'S', help: ['queued, in_progress, completed, failed or cancelled'] },
      workflow: { value: 'NAME', help: ['of this workflow only'] },
      limit: { value: 'N', help: ['at most so many; default 20'] },
      json: { help: ['one run a line'] },
      ...EVERYWHERE,
    },
  },
  logs: {
    summary: 'Prints the log of a run.',
    usage: ['logs [<run>] [options]'],
    words: RUN_WORD,
    options: {
      job: { short: 'j', value: 'ID', help: ['of this job only'] },
      step: { value: 'N', help: ['of this step only'] },
      tail: { value: 'N', help: ['only the last N lines of each step'] },
      ...EVERYWHERE,
    },
  },
  approve: {
    summary: 'Lets a run of a pull request from another repository go on, which waits for that.',
    usage: ['approve <run> [options]'],
    words: { '<run>': 'its id, GITHUB_RUN_ID, number or workflow#number' },
    options: EVERYWHERE,
  },
  cancel: {
    summary: 'Cancels a run that another process runs; a second time kills it.',
    usage: ['cancel [<run>] [options]'],
    words: RUN_WORD,
    options: EVERYWHERE,
  },
  rerun: {
    summary: 'Runs a finished run again and tells what happens until it ends.',
    usage: ['rerun [<run>] [options]'],
    words: RUN_WORD,
    options: {
      failed: { help: ['only the jobs that failed, and those that need them'] },
      job: { short: 'j', value: 'ID', help: ['only this job, and those that need it'] },
      ...FOLLOW,
    },
    notes: EXIT,
  },
  secrets: {
    summary: 'Keeps secrets. Values come from standard input, never from the command line.',
    usage: [
      'secrets list [options]',
      'secrets set <NAME> [options] < value',
      'secrets delete <NAME> [options]',
    ],
    words: {},
    options: {
      env: { value: 'NAME', help: ['environment; default: the whole repository'] },
      backend: { value: 'NAME', help: ['local (default) or vault; list: those of one'] },
      ...EVERYWHERE,
    },
  },
  actions: {
    summary: 'Gets the actions that the workflows use, lists them, removes what none uses.',
    usage: [
      'actions list [<workflow>] [options]',
      'actions fetch [<workflow>] [options]',
      'actions prune [options]',
    ],
    words: { '<workflow>': 'file name or name of the workflow; default: all of them' },
    options: {
      update: { help: ['fetch: asks again which commits branches and tags are'] },
      json: { help: ['one action a line'] },
      ...EVERYWHERE,
    },
    notes: `fetch gets by git what is missing, nested actions included, and keeps which commit each is in
.runner/actions.lock. prune removes what was fetched and is used no more. list and fetch end with 1
when something is missing.`,
  },
} as const satisfies Readonly<Record<string, CliCommand>>;

export type CommandName = keyof typeof COMMAND_TABLE;

/** The same, where every command is like another. */
export const COMMANDS: ReadonlyMap<string, CliCommand> = new Map(Object.entries(COMMAND_TABLE));
