import { execFileSync } from 'node:child_process';
import { realpathSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/**
 * What the runner asks of npm, a tenth of a second each: what a registry has of a package, and its tarball. It
 * compares no checksum, and knows no file of settings.
 */
const QUICK = `
const satisfies = require(${JSON.stringify(createRequire(import.meta.url).resolve('semver/functions/satisfies'))});
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { once } = require('node:events');
const { request } = require('node:http');
const [command, spec, ...rest] = process.argv.slice(2);
const [name, range = '*'] = spec.split('@');
const fields = rest.slice(0, rest.indexOf('--json'));
const valueOf = (one, field) => field.split('.').reduce((value, key) => value?.[key], one);
// Not \`fetch\`, which takes as long to load as all else.
async function get(url) {
  const [response] = await once(request(url).end(), 'response');
  const parts = [];
  for await (const part of response) parts.push(part);
  if (response.statusCode !== 200) throw new Error(response.statusCode + ' ' + url);
  return Buffer.concat(parts);
}
async function main() {
  const known = JSON.parse(await get(process.env.npm_config_registry + name));
  const all = Object.values(known.versions).filter(({ version }) => satisfies(version, range));
  if (command === 'view' && fields[0] === 'versions') return Object.keys(known.versions);
  if (command === 'view') {
    const found = all.map((one) =>
      fields.length === 1
        ? valueOf(one, fields[0])
        : Object.fromEntries(fields.map((field) => [field, valueOf(one, field)])),
    );
    return found.length === 1 ? found[0] : found;
  }
  const filename = name + '-' + all[0].version + '.tgz';
  const place = join(rest[rest.indexOf('--pack-destination') + 1], filename);
  writeFileSync(place, await get(all[0].dist.tarball));
  return [{ filename }];
}
main().then(
  (found) => console.log(JSON.stringify(found)),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
`;

/** The npm of this machine, and a small one for tests in which it does not matter. */
export type NpmKind = 'real' | 'quick';

/** Writes `npm` into a folder. It brings the Node that it runs on: none is found under its name. */
export function writeNpm(bin: string, kind: NpmKind): void {
  const script = kind === 'real' ? realNpm() : join(bin, '.npm.cjs');
  if (kind === 'quick') writeFileSync(script, QUICK);
  writeFileSync(join(bin, 'npm'), `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`, {
    mode: 0o755,
  });
}

function realNpm(): string {
  const npm = execFileSync('which', ['npm'], { encoding: 'utf8' }).trim();
  return join(dirname(realpathSync(npm)), 'npm-cli.js');
}
