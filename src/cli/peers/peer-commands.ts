import type { CommandTable } from '../core/command.ts';
import { JSON_OUTPUT, TENANT } from '../core/options.ts';

const COMMON = {
  'peer-token-file': {
    value: 'FILE',
    help: ['the token of the service that is left; default: GATEHOUSE_PEER_TOKEN'],
  },
  'user-type': {
    value: 'TYPE',
    help: ['the type whose objects are users; default: user, none for no type'],
  },
  create: { help: ['makes the project first'] },
  skip: { help: ['leaves out tuples that cannot be carried over, and names them'] },
  'dry-run': { help: ['checks model and tuples, and writes nothing'] },
  sample: { value: 'N', help: ['queries that both are asked; default 1000'] },
  seed: { value: 'N', help: ['which ones; default 1'] },
};
const NOTES = `The other service is only read. What is written there meanwhile may be missing here, and differ.
exit codes: 0 imported, and no answer differs; 1 an answer differs, or the model cannot be expressed;
2 the command is wrong, or what it names; 4 no answer of one of both`;

/** Commands that import from a running service of another kind. */
export const PEERS: CommandTable = {
  'import openfga': {
    summary: 'Brings model and tuples of a running OpenFGA here, and asks both a sample.',
    usage: ['import openfga --endpoint URL [options]'],
    words: {},
    options: {
      endpoint: { value: 'URL', help: ['its HTTP API, http://HOST:8080'] },
      store: { value: 'ID', help: ['the store; default: the only one'] },
      model: { value: 'ID', help: ['the model; default: the latest'] },
      ...COMMON,
      ...JSON_OUTPUT,
      ...TENANT,
    },
    notes: NOTES,
    examples: ['gatehouse import openfga --endpoint http://localhost:8081 -p atlas --create'],
    load: async () => (await import('./import-running.ts')).importOpenFga,
  },
  'import spicedb': {
    summary: 'Brings schema and relationships of a running SpiceDB here, and asks both a sample.',
    usage: ['import spicedb --endpoint URL [options]'],
    words: {},
    options: {
      endpoint: {
        value: 'URL',
        help: ['its gRPC port, http://HOST:50051 (plain text) or https://'],
      },
      ...COMMON,
      ...JSON_OUTPUT,
      ...TENANT,
    },
    notes: `It needs a package: npm install @authzed/authzed-node, in the folder where the command runs.\n${NOTES}`,
    examples: [
      'GATEHOUSE_PEER_TOKEN=key gatehouse import spicedb --endpoint http://localhost:50051 -p atlas',
    ],
    load: async () => (await import('./import-running.ts')).importSpiceDb,
  },
};
