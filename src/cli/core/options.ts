import type { CliOption } from '../../command-line/command-help.ts';

type OptionRows = Readonly<Record<string, CliOption>>;

/** Options of every command. */
export const HELP = { help: { short: 'h', help: ['this text'] } } satisfies OptionRows;

/** Options of commands that call a service: its address, credentials and timeout. */
export const SERVICE = {
  url: {
    value: 'URL',
    isMultiple: true,
    help: ['the service; default: that of the context, else http://127.0.0.1:8080'],
  },
  context: { short: 'c', value: 'NAME', help: ['a context (gatehouse context --help)'] },
  'token-file': { value: 'FILE', help: ['its token; default: GATEHOUSE_TOKEN'] },
  'admin-secret-file': {
    value: 'FILE',
    help: ['the operator secret; default: GATEHOUSE_ADMIN_SECRET'],
  },
  timeout: { value: 'SECONDS', help: ['for each call; default 30'] },
  ...HELP,
} satisfies OptionRows;

/** Options of commands about a project. */
export const PROJECT = {
  project: { short: 'p', value: 'ID', help: ['the project; default: that of the context'] },
  ...SERVICE,
} satisfies OptionRows;

/** Options of commands about the tuples of a tenant. */
export const TENANT = {
  tenant: { short: 't', value: 'ID', help: ['the tenant; default: that of the context'] },
  ...PROJECT,
} satisfies OptionRows;

/** Options of queries: the revision, the model version and additional inputs. */
export const READ = {
  'at-least': { value: 'TOKEN', help: ['answers include what this consistency token names'] },
  input: {
    value: 'JSON',
    help: ['inputs of conditions, as an object; @FILE reads them from a file'],
  },
  with: {
    value: 'TUPLE',
    isMultiple: true,
    help: ['a tuple that holds for this question alone; repeatable'],
  },
  'model-version': { value: 'N', help: ['by this version of the model; default: that in force'] },
  exact: { help: ['usersets hold what names them, and not what a member holds'] },
} satisfies OptionRows;

/** Option for one JSON document. */
export const JSON_OUTPUT = { json: { help: ['the answer as JSON'] } } satisfies OptionRows;

/** Options for rows as JSON. */
export const ROWS_OUTPUT = {
  json: { help: ['one array of JSON'] },
  jsonl: { help: ['JSON, a row a line'] },
} satisfies OptionRows;
