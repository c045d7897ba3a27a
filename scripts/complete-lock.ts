/**
 * Adds to package-lock.json the packages for other platforms that npm left out because the registry
 * at hand does not hold them: without their entries `npm ci` refuses the file, with them it passes them
 * over. Such an entry has no integrity; `npm install` on its platform adds it. Run it after adding a
 * dependency when `npm ci` says "Missing: … from lock file".
 */
import { readFileSync, writeFileSync } from 'node:fs';

type Entry = {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};
type Lock = { packages: Record<string, Entry> };

const PATH = 'package-lock.json';
const SYSTEMS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
];
const OTHER_SYSTEMS = ['sunos', 'win32'];
/** Names of processors in package names, where they differ from Node's. */
const PROCESSORS: Readonly<Record<string, string>> = { aarch64: 'arm64', armv7: 'arm' };
const KNOWN_PROCESSORS = 'arm arm64 ia32 loong64 mips64el ppc64 riscv64 s390x x64'.split(' ');

/** The entry of a platform package, from what its name says. */
function platformEntry(name: string, version: string, parent: Entry): Entry {
  const words = name.split(/[^a-z0-9]+/);
  const os = words.find((word) => SYSTEMS.includes(word) || OTHER_SYSTEMS.includes(word));
  const cpus = words.map((word) => PROCESSORS[word] ?? word);
  const cpu = cpus.find((word) => KNOWN_PROCESSORS.includes(word));
  if (os === undefined || cpu === undefined) throw new Error(`${name} names no platform`);
  const libc = words.some((word) => word.startsWith('musl')) ? 'musl' : 'glibc';
  const hasLibc = os === 'linux' && words.some((word) => /^(gnu|musl)/.test(word));
  const entry = {
    version,
    cpu: [cpu],
    ...(parent.dev === true ? { dev: true } : {}),
    ...(hasLibc ? { libc: [libc] } : {}),
    ...(parent.license === undefined ? {} : { license: parent.license }),
    optional: true,
    os: [os],
  };
  return entry;
}

const lock = JSON.parse(readFileSync(PATH, 'utf8')) as Lock;
const added: Record<string, Entry> = {};
for (const [path, parent] of Object.entries(lock.packages)) {
  if (path === '') continue;
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const places = [`node_modules/${name}`, `${path}/node_modules/${name}`];
    if (places.some((place) => lock.packages[place] !== undefined)) continue;
    added[`node_modules/${name}`] = platformEntry(name, version.replace(/^[~^]/, ''), parent);
  }
}
const entries = Object.entries({ ...lock.packages, ...added });
lock.packages = Object.fromEntries(entries.toSorted(([a], [b]) => a.localeCompare(b, 'en')));
writeFileSync(PATH, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${Object.keys(added).length} entries added`);
