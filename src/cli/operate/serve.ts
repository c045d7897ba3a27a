import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXIT_OK, EXIT_USAGE } from '../core/exit-codes.ts';

const HELP = `Starts the authorization service, with the embedded PostgreSQL or that of DATABASE_URL.

Usage: gatehouse serve [--instances N] [--testing]

  --instances N              so many processes on the port, behind one supervisor
  --testing                  keeps nothing: an empty PostgreSQL in a temporary folder, which goes with the
                             service. Watch and OpenFGA's API are on, where nothing else is set
  -h, --help                 this text

Settings are environment variables: docs/configuration.md. \`gatehouse doctor\` looks at them.

Examples:
  gatehouse serve
  GATEWAY_CONNECT_PORT=9000 gatehouse serve --testing
  DATABASE_URL=postgres://localhost/gatehouse gatehouse serve --instances 3
`;

/** Defaults of `--testing`, in addition to the settings. */
const TESTING_SETTINGS: Readonly<Record<string, string>> = {
  GATEWAY_WATCH_STREAMS: '8',
  GATEWAY_OPENFGA_API: 'true',
};
/** Settings that `--testing` refuses: they name the location of real data. */
const NOT_FOR_TESTING = ['DATABASE_URL', 'GATEWAY_DATA_DIR'] as const;

/**
 * Reads the arguments of `gatehouse serve`, and prepares `environment` for `--testing`. Returns the
 * arguments of the service, or an exit code if there is nothing to start.
 */
export function prepareServe(
  args: readonly string[],
  environment: Record<string, string | undefined>,
): readonly string[] | number {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(HELP);
    return EXIT_OK;
  }
  if (!args.includes('--testing')) return args;
  const rest = args.filter((word) => word !== '--testing');
  const wrong =
    NOT_FOR_TESTING.find((name) => (environment[name] ?? '') !== '') ??
    rest.find((word) => word.startsWith('--instances'));
  if (wrong !== undefined) {
    process.stderr.write(`error: ${wrong}: --testing is one process, and keeps its data itself\n`);
    return EXIT_USAGE;
  }
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-testing-'));
  environment['GATEWAY_DATA_DIR'] = folder;
  for (const [name, value] of Object.entries(TESTING_SETTINGS)) environment[name] ??= value;
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return rest;
}
