import type { CommandTable } from '../core/command.ts';
import { HELP, JSON_OUTPUT } from '../core/options.ts';

/** Commands about the command line tool itself. */
export const CONTEXT: CommandTable = {
  'context set': {
    summary: 'Keeps a service and its credentials under a name, and makes it the current one.',
    usage: ['context set <name> --url URL [options]'],
    words: { '<name>': 'letters, digits, dot, dash and underscore' },
    options: {
      url: { value: 'URL', isMultiple: true, help: ['the service'] },
      project: { short: 'p', value: 'ID', help: ['its project, where a command names none'] },
      tenant: { short: 't', value: 'ID', help: ['its tenant, where a command names none'] },
      'token-file': {
        value: 'FILE',
        help: ['its token is read from there, once; - is the standard input'],
      },
      'admin-secret-file': { value: 'FILE', help: ['the operator secret, in the same way'] },
      ...HELP,
    },
    notes: `Contexts are in ~/.config/gatehouse/contexts.json (or below XDG_CONFIG_HOME), for you alone. What is not
given stays as it is kept. A context's credentials go to its own service, and nowhere else.`,
    examples: [
      'gatehouse context set prod --url https://authz.example.com -p atlas --token-file token.txt',
      'pass show authz | gatehouse context set prod --token-file -',
    ],
    load: async () => (await import('./context.ts')).setContext,
  },
  'context use': {
    summary: 'Makes a context the current one.',
    usage: ['context use <name>'],
    words: {},
    options: HELP,
    examples: ['gatehouse context use prod'],
    load: async () => (await import('./context.ts')).switchContext,
  },
  'context list': {
    summary: 'Lists the contexts; what is secret is not shown.',
    usage: ['context list [options]'],
    words: {},
    options: { ...JSON_OUTPUT, jsonl: { help: ['JSON, a row a line'] }, ...HELP },
    load: async () => (await import('./context.ts')).listContexts,
  },
  'context delete': {
    summary: 'Forgets a context and its credentials.',
    usage: ['context delete <name>'],
    words: {},
    options: HELP,
    load: async () => (await import('./context.ts')).deleteContext,
  },
  completion: {
    summary: 'Prints a script by which a shell completes commands and options.',
    usage: ['completion bash|zsh|fish'],
    words: {},
    options: HELP,
    examples: [
      'source <(gatehouse completion bash)',
      'gatehouse completion zsh > "${fpath[1]}/_gatehouse"',
      'gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish',
    ],
    load: async () => (await import('./completion.ts')).printCompletion,
  },
};
