/**
 * Loaded before each unit test: what starts a child process, listens or connects fails there, and so
 * does the test, even where the code under test copes with that failure. Such a test belongs into
 * `x.host.test.ts`, or with PostgreSQL into `x.pg.test.ts` (CONTRIBUTING.md).
 */
import childProcess from 'node:child_process';
import dgram from 'node:dgram';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { constants } from 'node:os';
import { afterAll, afterEach } from 'vitest';

const CHILD_FUNCTIONS = [
  'exec',
  'execFile',
  'execFileSync',
  'execSync',
  'fork',
  'spawn',
  'spawnSync',
] as const;

/** One for all files of a process, since what is replaced stays so. */
const shared = globalThis as { unitTestViolations?: string[] };
const violations = (shared.unitTestViolations ??= []);

/** Stands for a function that a unit test may not call. */
function forbidden(name: string): () => never {
  return () => {
    const problem = `a unit test must not call ${name}: name the file x.host.test.ts or x.pg.test.ts`;
    violations.push(problem);
    throw new Error(problem);
  };
}

function failOnViolations(): void {
  const found = new Set(violations.splice(0));
  if (found.size > 0) throw new Error([...found].join('\n'));
}

for (const name of CHILD_FUNCTIONS) {
  Object.assign(childProcess, { [name]: forbidden(`child_process.${name}`) });
}
Object.assign(net.Server.prototype, { listen: forbidden('net.Server.listen') });
Object.assign(net.Socket.prototype, { connect: forbidden('net.Socket.connect') });
Object.assign(dgram.Socket.prototype, { bind: forbidden('dgram.Socket.bind') });
syncBuiltinESMExports();

// It does not go through Node's own modules: posix_spawn of src/shared/process/native-spawn.ts.
const loadAddon = process.dlopen.bind(process);
process.dlopen = (target: { exports: object }, filename: string, flags?: number): void => {
  loadAddon(target, filename, flags ?? constants.dlopen.RTLD_LAZY);
  if (filename.includes('koffi')) target.exports = withoutSpawn(target.exports as Koffi);
};

type Library = { readonly func: (signature: string) => unknown };
type Koffi = { readonly load: (...args: unknown[]) => Library };

/** Locks of files go through it, too; programs may not. */
function withoutSpawn(koffi: Koffi): Koffi {
  const original = koffi.load;
  const load: Koffi['load'] = (...args) => {
    const library = original(...args);
    const func: Library['func'] = (signature) =>
      signature.includes('posix_spawn(') ? forbidden('posix_spawn') : library.func(signature);
    return { ...library, func };
  };
  return Object.assign(koffi, { load });
}

afterEach(failOnViolations);
afterAll(failOnViolations);
