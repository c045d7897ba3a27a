/**
 * `npm run sbom -- [FILE] [--omit-dev]` writes a CycloneDX bill of materials: npm's own for the packages, and below
 * each package of third-party binaries what upstream made, with licences and checksums. To stdout without FILE.
 * `--check` writes nothing, and fails when a package of package-lock.json is missing from it.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type BinaryPackage, readBinaryRecord } from './binary-record.ts';

type Component = {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly unknown[];
  components?: readonly unknown[];
};
type Bom = { readonly bomFormat: string; readonly components: readonly Component[] };

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** npm's bill of materials. Errors: throws with what npm said. */
function bomOfNpm(isDevOmitted: boolean): Bom {
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--loglevel=error'];
  if (isDevOmitted) args.push('--omit=dev');
  const npm = process.env['npm_execpath'];
  const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 26 } as const;
  const { status, stdout, stderr, error } =
    npm !== undefined && /\.c?js$/.test(npm)
      ? spawnSync(process.execPath, [npm, ...args], options)
      : spawnSync('npm', args, options);
  if (status !== 0) throw new Error(`npm sbom: ${error?.message ?? stderr}`);
  return JSON.parse(stdout) as Bom;
}

/** What a package of binaries is made of, as components below it. */
function componentsOf({ upstream, bundled = [], files }: BinaryPackage): unknown[] {
  const { archive } = upstream;
  return [
    {
      type: 'application',
      name: upstream.name,
      version: upstream.version,
      licenses: [{ expression: upstream.licence }],
      externalReferences: [
        {
          type: 'distribution',
          url: upstream.home,
          ...(archive === undefined ? {} : { comment: archive.name }),
          ...(archive?.sha256 === undefined
            ? {}
            : { hashes: [{ alg: 'SHA-256', content: archive.sha256 }] }),
        },
      ],
      components: Object.entries(files).map(([path, content]) => ({
        type: 'file',
        name: path,
        hashes: [{ alg: 'SHA-256', content }],
      })),
    },
    ...bundled.map(({ name, version, licence }) => ({
      type: 'library',
      name,
      version,
      licenses: [{ expression: licence }],
    })),
  ];
}

/** The packages of package-lock.json, name@version. */
function lockedPackages(isDevOmitted: boolean): Set<string> {
  const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8')) as {
    packages: Record<string, { version?: string; name?: string; dev?: boolean }>;
  };
  return new Set(
    Object.entries(packages)
      .filter(([path, { dev }]) => path !== '' && !(isDevOmitted && dev === true))
      .map(
        ([path, { name, version }]) =>
          `${name ?? path.replace(/^.*node_modules\//, '')}@${version}`,
      ),
  );
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    check: { type: 'boolean', default: false },
    'omit-dev': { type: 'boolean', default: false },
  },
});
const bom = bomOfNpm(values['omit-dev']);
const byReference = new Map(bom.components.map((component) => [component['bom-ref'], component]));
const record = Object.values(readBinaryRecord());
for (const entry of record) {
  const component = byReference.get(entry.package);
  if (component !== undefined) component.components = componentsOf(entry);
}
if (values.check) {
  const missing = [...lockedPackages(values['omit-dev']), ...record.map((entry) => entry.package)]
    .filter((name) => !byReference.has(name))
    .map((name) => `${name} is missing from the bill of materials`);
  const bare = bom.components
    .filter(({ licenses = [] }) => licenses.length === 0)
    .map((component) => `${component['bom-ref']} has no licence in the bill of materials`);
  process.stderr.write([...missing, ...bare].map((line) => `${line}\n`).join(''));
  process.exitCode = missing.length + bare.length > 0 ? 1 : 0;
} else {
  const text = `${JSON.stringify(bom, null, 2)}\n`;
  if (positionals[0] === undefined) process.stdout.write(text);
  else writeFileSync(positionals[0], text);
}
