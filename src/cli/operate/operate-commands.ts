import type { CommandTable } from '../core/command.ts';
import { HELP, JSON_OUTPUT, PROJECT, ROWS_OUTPUT, SERVICE, TENANT } from '../core/options.ts';

const FIELDS = {
  name: { value: 'NAME', help: ['for people'] },
  'data-region': { value: 'REGION', help: ['instances of other regions refuse to serve it'] },
  'max-check-reads': { value: 'READS', help: ['its read budget (gatehouse budget)'] },
  'refuse-unknown-relations': {
    value: 'true|false',
    help: ['whether names that its model lacks are errors'],
  },
};

const ADMIN_NOTES =
  'Needs the operator secret: GATEHOUSE_ADMIN_SECRET, --admin-secret-file, or that of the context.';

/** Commands for operators of the service. */
export const OPERATE: CommandTable = {
  doctor: {
    summary: 'Looks at settings, machine, database and ports, and says what to do.',
    usage: ['doctor [--json]'],
    words: {},
    options: { ...JSON_OUTPUT, ...HELP },
    notes: `Reads the settings of the service: GATEWAY_… and DATABASE_URL (docs/configuration.md). Changes nothing: no
migration is run, no file is kept. Shows no secret. Every check ends within 5 s.
exit codes: 0 no check failed; 1 one did; 2 the command is wrong`,
    examples: ['gatehouse doctor', 'GATEWAY_CONNECT_PORT=9000 gatehouse doctor --json'],
    load: async () => (await import('./doctor.ts')).runDoctor,
  },
  fsck: {
    summary: 'Compares every loaded index of an instance with what is stored, both ways.',
    usage: ['fsck [--url http://HOST:9090] [options]'],
    words: {},
    options: {
      url: {
        value: 'URL',
        isMultiple: true,
        help: ['its metrics port; default: that of the settings'],
      },
      'token-file': {
        value: 'FILE',
        help: ['its token; default: GATEHOUSE_TOKEN, else that of the settings'],
      },
      timeout: SERVICE.timeout,
      ...JSON_OUTPUT,
      ...HELP,
    },
    notes: `An index that differs is loaded again. Settings are those of the service: GATEWAY_….
exit codes: 0 all agree; 1 one differed; 2 something could not be compared, or the instance not be asked`,
    examples: [
      'gatehouse fsck',
      'gatehouse fsck --url http://10.0.0.7:9090 --token-file token.txt',
    ],
    load: async () => (await import('./fsck.ts')).runFsck,
  },
  'new-epoch': {
    summary: 'Ends every consistency token and index, after a cold copy was put back.',
    usage: ['new-epoch'],
    words: {},
    options: HELP,
    notes: `For after the data directory was copied or put back while nothing ran, which nothing in the database shows
(docs/operations.md, "Restore"). Run it while no instance runs, with the settings of the service.
exit codes: 0 it begins; 1 an instance runs, or the database cannot be used; 2 the command or a setting is wrong`,
    examples: ['gatehouse new-epoch', 'GATEWAY_DATA_DIR=/var/lib/gatehouse gatehouse new-epoch'],
    load: async () => (await import('./new-epoch.ts')).beginEpoch,
  },
  budget: {
    summary: 'Shows read budgets, who ran out of them, and what would have been enough.',
    usage: ['budget [project] [options]'],
    words: { '[project]': 'without one: which projects were refused most, or read most' },
    options: {
      ceiling: { value: 'READS', help: ['refused ones are evaluated again with at most so many'] },
      set: { value: 'READS', help: ['sets the budget of the project first'] },
      clear: { help: ['gives it the default budget first'] },
      ...SERVICE,
      ...JSON_OUTPUT,
    },
    notes: `Figures are those of the instances that are asked, since they were started: give --url for each.
${ADMIN_NOTES}
exit codes: 0 done; 2 the command is wrong, or an instance could not be asked`,
    examples: ['gatehouse budget', 'gatehouse budget atlas', 'gatehouse budget atlas --set 50000'],
    load: async () => (await import('./budget.ts')).runBudget,
  },
  'project list': {
    summary: 'Lists the projects.',
    usage: ['project list [options]'],
    words: {},
    options: { ...SERVICE, ...ROWS_OUTPUT },
    notes: ADMIN_NOTES,
    examples: ['gatehouse project list', 'gatehouse project list --jsonl'],
    load: async () => (await import('./project.ts')).listProjects,
  },
  'project get': {
    summary: 'Shows a project.',
    usage: ['project get <id> [options]'],
    words: { '<id>': 'a project' },
    options: { ...SERVICE, ...JSON_OUTPUT },
    notes: ADMIN_NOTES,
    examples: ['gatehouse project get default', 'gatehouse project get default --json'],
    load: async () => (await import('./project.ts')).getProject,
  },
  'project create': {
    summary: 'Creates a project, with the built-in model.',
    usage: ['project create <id> [options]'],
    words: { '<id>': 'a-z, 0-9, _ and -, up to 63 characters' },
    options: { ...FIELDS, ...SERVICE, ...JSON_OUTPUT },
    notes: `Without --name it is called as its id. Its model comes with gatehouse model apply.\n${ADMIN_NOTES}`,
    examples: [
      'gatehouse project create atlas --name "Atlas"',
      'gatehouse project create borealis --data-region eu-1 --max-check-reads 50000',
    ],
    load: async () => (await import('./project.ts')).createProject,
  },
  'project update': {
    summary: 'Changes the fields of a project that are given.',
    usage: ['project update <id> [options]'],
    words: { '<id>': 'a project' },
    options: {
      ...FIELDS,
      status: { value: 'STATUS', help: ['active, or suspended: its data calls are refused'] },
      'clear-data-region': { help: ['every region serves it'] },
      'clear-max-check-reads': { help: ['it has the default read budget'] },
      ...SERVICE,
      ...JSON_OUTPUT,
    },
    notes: `Other instances follow within GATEWAY_PROJECT_TTL_SECONDS. Its model changes with gatehouse model apply.\n${ADMIN_NOTES}`,
    examples: [
      'gatehouse project update atlas --status suspended',
      'gatehouse project update atlas --clear-data-region --refuse-unknown-relations true',
    ],
    load: async () => (await import('./project.ts')).updateProject,
  },
  'callers check': {
    summary: 'Checks a file of callers, and lists what each may do; shows no token.',
    usage: ['callers check <file> [--json|--jsonl]'],
    words: { '<file>': 'what GATEWAY_CALLERS_FILE names' },
    options: { ...ROWS_OUTPUT, ...HELP },
    notes: `The format is in docs/operations.md, "Callers".
exit codes: 0 the service would take it; 1 it would not; 2 the file cannot be read`,
    examples: ['gatehouse callers check callers.json'],
    load: async () => (await import('./callers.ts')).checkCallers,
  },
  'callers may': {
    summary: 'Says whether a caller of a file may call a method.',
    usage: ['callers may <file> <name> <method> [options]'],
    words: {
      '<file>': 'what GATEWAY_CALLERS_FILE names',
      '<name>': 'of a caller in it',
      '<method>': 'package.Service/Method, or fsck/start and fsck/report',
    },
    options: {
      project: { ...PROJECT.project, help: ['in this project; default: the default one'] },
      tenant: { ...TENANT.tenant, help: ['in this tenant; default: the default one'] },
      'all-tenants': { help: ['with all_tenants set in the request'] },
      ...HELP,
    },
    notes: `Scopes alone are looked at: not the rate, and not the operator secret that AdminService, ModelService and
BudgetService need as well. Nothing is asked of a service.
exit codes: 0 it may; 1 it may not; 2 the command or the file is wrong`,
    examples: [
      'gatehouse callers may callers.json billing workspace.v1.AuthzService/Check -p atlas -t acme',
    ],
    load: async () => (await import('./callers.ts')).mayCall,
  },
  'callers hash': {
    summary: 'Prints the SHA-256 of a token, for token_sha256 of a file of callers.',
    usage: ['callers hash [--token-file FILE]'],
    words: {},
    options: {
      'token-file': { value: 'FILE', help: ['holds the token; default: the standard input'] },
      ...HELP,
    },
    examples: [
      'pass show billing | gatehouse callers hash',
      'gatehouse callers hash --token-file token.txt',
    ],
    load: async () => (await import('./callers.ts')).hashToken,
  },
};
