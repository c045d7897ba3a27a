import type { CommandTable } from '../core/command.ts';
import { HELP, SERVICE } from '../core/options.ts';
import { MODEL_VERSIONS } from './version-commands.ts';

const EXIT_CODES = {
  validate: 'exit codes: 0 no errors; 1 errors; 2 the command or a file is wrong',
  format: `exit codes: 0 all are laid out so, now or already; 1 one is not (--check), or is no model;
2 the command or a file is wrong`,
  convert: `exit codes: 0 written; 1 FILE is no model, or a tuple cannot be carried over; 2 the command or a file is wrong`,
  import: `exit codes: 0 imported, and every assertion holds; 1 refused, or an assertion does not hold; 2 the command or
a file is wrong`,
  types: 'exit codes: 0 written; 1 FILE is no model; 2 the command or a file is wrong',
  test: 'exit codes: 0 all holds; 1 something does not; 2 the command, a file or a model is wrong',
} as const;

const OUT = { value: 'FILE', help: ['where to; default: the standard output'] } as const;
const FROM = {
  value: 'WHOSE',
  help: ['openfga or spicedb, where the name of the file does not say'],
} as const;
const USER_TYPE = {
  value: 'TYPE',
  help: ['the type whose objects are users: user where it is not given; none is no type'],
} as const;

const VALIDATE = {
  summary: 'Says what is wrong with models, by line and column.',
  usage: ['model validate [--imported] FILE...', 'model validate --stored [PROJECT...]'],
  words: { 'FILE...': '.gate or JSON; - is the standard input' },
  options: {
    imported: {
      help: [
        'the models came from OpenFGA or SpiceDB:',
        'names what their conditions decide otherwise here',
      ],
    },
    stored: {
      help: [
        'asks a service for its models instead, and names the same of those',
        "in force and of those that came through OpenFGA's API; of all",
        'projects, where none is given',
      ],
    },
    ...SERVICE,
  },
  notes: `Names what is wrong (error) and what is likely not meant (warning), as a write of the model would.
${EXIT_CODES.validate}`,
  examples: [
    'gatehouse model validate docs/patterns/*.gate',
    '# of a service, by the operator secret in GATEHOUSE_ADMIN_SECRET',
    'gatehouse model validate --stored --url http://127.0.0.1:8080',
  ],
  load: async () => (await import('./validate.ts')).validateModels,
} as const;

/** Commands about models: in files, and the versions that a project has. */
export const MODEL: CommandTable = {
  'model validate': VALIDATE,
  'model check': {
    ...VALIDATE,
    summary: 'The same as model validate, its name of old.',
    usage: ['model check [--imported] FILE...', 'model check --stored [PROJECT...]'],
    examples: ['gatehouse model check docs/patterns/*.gate'],
  },
  'model format': {
    summary: 'Lays .gate files out in the one way that there is, and keeps their comments.',
    usage: ['model format [--check] FILE.gate...'],
    words: { 'FILE.gate...': '- reads the standard input and writes the standard output' },
    options: {
      check: { help: ['changes nothing, and names the files that are laid out otherwise'] },
      ...HELP,
    },
    notes: EXIT_CODES.format,
    examples: ['gatehouse model format --check docs/patterns/*.gate'],
    load: async () => (await import('./format.ts')).formatFiles,
  },
  'model convert': {
    summary: 'Writes a model as .gate or as JSON, or tuples of OpenFGA and SpiceDB for an import.',
    usage: [
      'model convert FILE [--to gate|json] [--out FILE]',
      'model convert FILE --to tuples [--format FORM] [--model FILE] [--skip] [--out FILE]',
    ],
    words: { FILE: '- is the standard input' },
    options: {
      to: {
        value: 'FORM',
        help: ['gate, json or tuples; the other form than FILE has, where it is not given'],
      },
      out: OUT,
      format: {
        value: 'FORM',
        help: [
          'of tuples: json, csv, yaml or text, where the name of FILE does not say;',
          'text are relationships of SpiceDB',
        ],
      },
      model: {
        value: 'FILE',
        help: [
          'of tuples: the model of the peer: names are then those that',
          '`model import` gave them. A store or validation file has its own',
        ],
      },
      from: FROM,
      'user-type': USER_TYPE,
      skip: { help: ['leaves out what cannot be carried over, says what, and counts it'] },
      ...HELP,
    },
    notes: `Both forms of a model say the same, member for member; comments are in .gate only.
With --to tuples, or of a file .csv, .jsonl, .ndjson, .yaml or .txt: tuples of OpenFGA (JSON, JSON lines, YAML, store
files, CSV) or SpiceDB (relationships as text, validation files) become lines of JSON for POST /v1/tuples:import.
The first one that cannot be carried over ends it, named by line and field.
${EXIT_CODES.convert}`,
    examples: [
      'gatehouse model convert model.gate > model.json',
      'gatehouse model convert tuples.csv --model model.fga --out tuples.jsonl',
    ],
    load: async () => (await import('./convert.ts')).convertFile,
  },
  'model import': {
    summary: 'Writes a model of OpenFGA or SpiceDB as .gate, and tries its own assertions.',
    usage: ['model import FILE [--from openfga|spicedb] [--out FILE] [--tests FILE]'],
    words: { FILE: '.fga, fga.mod, .json, .fga.yaml; .zed, validation files' },
    options: {
      from: FROM,
      'user-type': USER_TYPE,
      out: OUT,
      tests: { value: 'FILE', help: ['where to write the assertions, as a file of assertions'] },
      ...HELP,
    },
    notes: `Names on the standard error what it could not express, with the place and the reason, or what is called
otherwise. A model is imported whole or not at all. Assertions that the file brings along are asked of the
imported model, and the model is not written if one is answered otherwise.
${EXIT_CODES.import}`,
    examples: ['gatehouse model import store.fga.yaml --out model.gate --tests model.yaml'],
    load: async () => (await import('./import.ts')).importModel,
  },
  'model types': {
    summary: 'Writes a model as a type of TypeScript, for @gatehouse/client.',
    usage: ['model types FILE [--name NAME] [--out FILE]'],
    words: { FILE: '.gate or JSON; - is the standard input' },
    options: {
      name: { value: 'NAME', help: ['of the type; default Model'] },
      out: OUT,
      ...HELP,
    },
    notes: `Namespaces with their relations, so that a misspelt name does not compile: new GatehouseClient<Model>({ … })
${EXIT_CODES.types}`,
    examples: ['gatehouse model types model.gate > model.ts'],
    load: async () => (await import('./types.ts')).writeTypes,
  },
  'model test': {
    summary: 'Runs files of assertions against a model, without a service.',
    usage: ['model test [--model FILE] [--junit FILE] FILE...'],
    words: { 'FILE...': 'files of assertions; - is the standard input' },
    options: {
      model: { value: 'FILE', help: ['the model to test, whatever the files say'] },
      quiet: { help: ['says nothing of files in which all holds'] },
      junit: { value: 'FILE', help: ['where to write the results as JUnit XML besides'] },
      ...HELP,
    },
    notes: `Each test runs over tuples of its own, by the engine of the service. The model is that of --model (.gate or
JSON), else what the file says: model, or model_file beside it. What does not hold is named by file and line.
${EXIT_CODES.test}`,
    examples: [
      'gatehouse model test docs/patterns/*.yaml',
      'gatehouse model test --junit results.xml --model new.gate models/*.yaml',
    ],
    load: async () => (await import('./test.ts')).testModels,
  },
  ...MODEL_VERSIONS,
};
