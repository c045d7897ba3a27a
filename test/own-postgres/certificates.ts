import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const hasOpenssl = spawnSync('openssl', ['version']).error === undefined;

export type Authority = { readonly certificate: string; readonly key: string };

/** A certificate authority of a test's own, in files of `folder`. */
export function makeAuthority(folder: string, name: string): Authority {
  const [certificate, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  openssl(
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
    '-subj',
    `/CN=${name}`,
    '-keyout',
    key,
    '-out',
    certificate,
  );
  return { certificate, key };
}

/** A server's certificate for one host name, signed by an authority. */
export function makeCertificate(folder: string, authority: Authority, host: string): Authority {
  const [certificate, key] = [join(folder, `${host}.crt`), join(folder, `${host}.key`)];
  const [request, extensions] = [join(folder, `${host}.csr`), join(folder, `${host}.ext`)];
  writeFileSync(extensions, `subjectAltName=DNS:${host}\n`);
  openssl(
    'req',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-subj',
    `/CN=${host}`,
    '-keyout',
    key,
    '-out',
    request,
  );
  openssl(
    'x509',
    '-req',
    '-in',
    request,
    '-CA',
    authority.certificate,
    '-CAkey',
    authority.key,
    '-CAcreateserial',
    '-days',
    '2',
    '-extfile',
    extensions,
    '-out',
    certificate,
  );
  return { certificate, key };
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' });
}
