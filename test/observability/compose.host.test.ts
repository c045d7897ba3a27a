import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import type { OptionTable } from '../../src/config/option.ts';
import { OPTIONS } from '../../src/config/options.ts';
import { HostAllowList } from '../../src/http/host-allow-list.ts';
import { loadNotifySettings, NOTIFY_OPTIONS } from '../../src/notify/service/settings.ts';
import { loadRunnerSettings, RUNNER_OPTIONS } from '../../src/runner/settings/settings.ts';
import {
  readDashboards,
  readYaml,
  type Compose,
  type ComposeService,
  type PrometheusConfig,
} from './deploy-files.ts';

/** What the parts of the compose file demand. */
const SECRETS: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: 'postgres-password',
  GATEWAY_SERVICE_AUTH_TOKENS: 'token-a,token-b',
  NOTIFY_SERVICE_AUTH_TOKENS: 'token-c',
  RUNNER_API_TOKEN: 'token-d',
  GRAFANA_ADMIN_PASSWORD: 'grafana-password',
};
const PRODUCTS = ['authz', 'notify', 'runner'] as const;
type Product = (typeof PRODUCTS)[number];
const TABLES: Readonly<Record<Product, OptionTable>> = {
  authz: OPTIONS,
  notify: NOTIFY_OPTIONS,
  runner: RUNNER_OPTIONS,
};

let compose: Compose;
let prometheus: PrometheusConfig;

beforeAll(() => {
  compose = readYaml('docker-compose.yml') as Compose;
  prometheus = readYaml('deploy/prometheus/prometheus.yml') as PrometheusConfig;
});

function serviceOf(name: string): ComposeService {
  const service = compose.services[name];
  if (service === undefined) throw new Error(`no service ${name}`);
  return service;
}

/** `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `$$`, as Docker Compose replaces them. */
function interpolated(text: string, environment: Readonly<Record<string, string>>): string {
  const pattern = /\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}/g;
  return text.replaceAll(pattern, (all, name: string | undefined, kind, fallback) => {
    if (name === undefined) return all.slice(1);
    const value = environment[name] ?? '';
    if (value !== '') return value;
    if (kind === '?') throw new Error(`${name}: ${String(fallback)}`);
    return typeof fallback === 'string' ? fallback : '';
  });
}

function environmentOf(name: string): Readonly<Record<string, string>> {
  const entries = Object.entries(serviceOf(name).environment ?? {});
  return Object.fromEntries(
    entries.map(([key, value]) => [key, interpolated(String(value), SECRETS)]),
  );
}

/** The ports on which a service listens, as it would read its settings there. */
function portsOf(name: Product): {
  readonly all: readonly number[];
  readonly metrics: number | undefined;
} {
  const environment = environmentOf(name);
  if (name === 'authz') {
    const { connectPort, metricsPort } = loadConfig(environment);
    return { all: [connectPort, metricsPort], metrics: metricsPort };
  }
  if (name === 'notify') {
    const { clientPort, internalPort, metricsPort } = loadNotifySettings(environment);
    return { all: [clientPort, internalPort, metricsPort], metrics: metricsPort };
  }
  const { port, metricsPort } = loadRunnerSettings(environment);
  return { all: [port, metricsPort ?? 0], metrics: metricsPort };
}

const found = spawnSync('docker-compose', ['--version']);

describe.skipIf(found.error !== undefined)('docker-compose (Debian package docker-compose)', () => {
  const config = (environment: Readonly<Record<string, string>>, ...options: readonly string[]) =>
    spawnSync('docker-compose', [...options, 'config', '--quiet'], {
      env: { PATH: process.env['PATH'], ...environment },
      encoding: 'utf8',
    });

  test('config finds nothing', () => {
    expect(config(SECRETS)).toMatchObject({ status: 0, stderr: '' });
  });

  test('config finds nothing in the profile of several instances', () => {
    expect(config(SECRETS, '--profile', 'cluster')).toMatchObject({ status: 0, stderr: '' });
  });

  test('the authorization service alone needs its own secrets alone', () => {
    const { POSTGRES_PASSWORD = '', GATEWAY_SERVICE_AUTH_TOKENS = '' } = SECRETS;
    const own = { POSTGRES_PASSWORD, GATEWAY_SERVICE_AUTH_TOKENS };
    expect(config(own)).toMatchObject({ status: 0, stderr: '' });
  });

  test('config demands secrets', () => {
    const { status, stderr } = config({});
    expect(status).not.toBe(0);
    expect(stderr).toContain('is not set');
  });
});

test('every secret of the environment is demanded, by the part that needs it', () => {
  const text = readFileSync('docker-compose.yml', 'utf8');
  const { POSTGRES_PASSWORD = '', GATEWAY_SERVICE_AUTH_TOKENS = '' } = SECRETS;
  const own = { POSTGRES_PASSWORD, GATEWAY_SERVICE_AUTH_TOKENS };
  expect(() => interpolated(text, own)).not.toThrow();
  for (const name of Object.keys(own)) {
    expect(() => interpolated(text, { ...own, [name]: '' })).toThrow(`${name}: is not set`);
  }
  // The others' containers ask for theirs as they start: their first words are run here as they are there.
  const demands = [
    ['notify', 'NOTIFY_SERVICE_AUTH_TOKENS', serviceOf('notify').command],
    ['runner', 'RUNNER_API_TOKEN', serviceOf('runner').command],
    ['grafana', 'GF_SECURITY_ADMIN_PASSWORD', serviceOf('grafana').entrypoint],
  ] as const;
  for (const [name, variable, command] of demands) {
    const [program = '', option = '', script = ''] = command ?? [];
    expect([program, option], name).toEqual(['sh', '-c']);
    const words = script.replaceAll('$$', '$').replace(/exec .*/, 'echo started');
    const run = (value: string) =>
      spawnSync(program, [option, words], {
        env: { PATH: process.env['PATH'], [variable]: value },
        encoding: 'utf8',
      });
    expect(run(''), name).toMatchObject({
      stdout: '',
      stderr: expect.stringContaining(`${variable}: is not set`),
    });
    expect(run('secret'), name).toMatchObject({ status: 0, stdout: 'started\n' });
  }
});

test('what nobody asked for by a profile is the authorization service and its database', () => {
  const always = Object.entries(compose.services)
    .filter(([, { profiles = [] }]) => profiles.length === 0)
    .map(([name]) => name);
  expect(always.toSorted()).toEqual(['authz', 'postgres']);
});

test('no container is root, may take all memory or fill the disk with its log, or changes with a tag', () => {
  for (const [name, service] of Object.entries(compose.services)) {
    expect(service.user, name).toMatch(/^[1-9]\d*:\d+$/);
    expect(service.mem_limit, name).toMatch(/^\d+[mg]$/);
    expect(service.logging?.options, name).toEqual({ 'max-size': '10m', 'max-file': '5' });
    expect(service.cap_drop, name).toEqual(['ALL']);
    // Ours is built here, from an image that the Dockerfile pins.
    if (service.image !== 'gatehouse')
      expect(service.image, name).toMatch(/:.+@sha256:[0-9a-f]{64}$/);
  }
  const dockerfile = readFileSync('Dockerfile', 'utf8');
  expect(dockerfile).toMatch(/^FROM \S+:\S+@sha256:[0-9a-f]{64}$/m);
  expect(dockerfile).toMatch(/^USER 1000:1000$/m);
});

test('every service is known, is on networks that exist, and says how healthy it is', () => {
  expect(Object.keys(compose.services).toSorted()).toEqual([
    'authz',
    'authz-2',
    'authz-3',
    'grafana',
    'haproxy',
    'notify',
    'postgres',
    'prometheus',
    'runner',
  ]);
  for (const [name, service] of Object.entries(compose.services)) {
    expect(service.healthcheck?.test.length, name).toBeGreaterThan(1);
    expect(service.networks?.length, name).toBeGreaterThan(0);
    for (const network of service.networks ?? []) expect(compose.networks).toHaveProperty(network);
  }
  // Steps are foreign code: they are kept from the database.
  const data = serviceOf('postgres').networks ?? [];
  expect((serviceOf('runner').networks ?? []).filter((one) => data.includes(one))).toEqual([]);
});

test('every port is published on the loopback alone, and none twice', () => {
  const hostPorts: string[] = [];
  for (const [name, { ports = [] }] of Object.entries(compose.services)) {
    for (const port of ports) {
      const [, host = ''] = /^127\.0\.0\.1:(\d+):\d+$/.exec(port) ?? [];
      expect(host, `${name}: ${port}`).not.toBe('');
      hostPorts.push(host);
    }
  }
  expect(new Set(hostPorts).size).toBe(hostPorts.length);
  expect(hostPorts.length).toBeGreaterThanOrEqual(9);
});

describe.each(PRODUCTS)('%s', (name) => {
  test('takes its environment, each variable of which is an option', () => {
    const options = Object.values(TABLES[name]).map(({ env }) => env);
    const variables = Object.keys(serviceOf(name).environment ?? {});
    expect(variables.filter((variable) => !options.includes(variable))).toEqual([]);
    expect(portsOf(name).all).not.toContain(0);
  });

  test('publishes the ports on which it listens', () => {
    const published = (serviceOf(name).ports ?? []).map((port) => Number(port.split(':').at(-1)));
    expect(new Set(published)).toEqual(new Set(portsOf(name).all));
  });

  test('listens beyond its container, and says why that is no plain text for others', () => {
    const options: OptionTable = TABLES[name];
    const environment = environmentOf(name);
    expect(environment[options['host']?.env ?? '']).toBe('0.0.0.0');
    expect(environment[options['isBehindProxy']?.env ?? '']).toBe('true');
  });

  test('takes every secret from the environment', () => {
    const secrets = Object.values(TABLES[name]).filter(({ secret }) => secret);
    const environment = serviceOf(name).environment ?? {};
    for (const { env } of secrets) {
      const value = environment[env];
      if (value !== undefined) expect(String(value), env).toMatch(/\$\{\w+:[-?]/);
    }
  });

  test('starts a program that the image has, and probes a port that it listens on', () => {
    const { command = [], healthcheck } = serviceOf(name);
    const [node, file = ''] =
      command[0] === 'sh' ? ((command[2] ?? '').split('exec ')[1]?.split(' ') ?? []) : command;
    expect(node).toBe('node');
    expect(existsSync(file)).toBe(true);
    const [, port = ''] =
      /http:\/\/127\.0\.0\.1:(\d+)\//.exec(healthcheck?.test.join(' ') ?? '') ?? [];
    expect(portsOf(name).all).toContain(Number(port));
  });

  test('is scraped where it serves its metrics', () => {
    const job = prometheus.scrape_configs.find((one) => one.job_name === name);
    const targets = job?.static_configs.flatMap((config) => config.targets);
    expect(targets).toEqual([`${name}:${portsOf(name).metrics}`]);
    const networks = serviceOf('prometheus').networks ?? [];
    expect((serviceOf(name).networks ?? []).some((one) => networks.includes(one))).toBe(true);
  });

  test('answers to the name of its service', () => {
    // Those two take any name once they have tokens; the runner looks at it in any case.
    if (name === 'authz') expect(loadConfig(environmentOf(name)).serviceAuthTokens).not.toEqual([]);
    else if (name === 'notify') {
      expect(loadNotifySettings(environmentOf(name)).serviceAuthTokens).not.toEqual([]);
    } else {
      const hosts = new HostAllowList(loadRunnerSettings(environmentOf(name)));
      for (const port of portsOf(name).all) {
        expect(hosts.accepts(`${name}:${port}`, port)).toBe(true);
      }
    }
  });
});

describe('the profile of several instances', () => {
  const more = ['authz-2', 'authz-3'];

  test('adds instances like the first, without ports of their own, and a balancer over all three', () => {
    const { ports: _, ...first } = serviceOf('authz');
    for (const name of more) expect(serviceOf(name)).toEqual({ ...first, profiles: ['cluster'] });
    expect(serviceOf('haproxy')).toMatchObject({ profiles: ['cluster'] });
    const text = readFileSync('deploy/haproxy.cfg', 'utf8');
    const servers = [...text.matchAll(/server i\d "\$\{GATEHOUSE_\d-(.+?):(\d+)\}"/g)];
    expect(servers.map(([, host]) => host)).toEqual(['authz', ...more, 'authz', ...more]);
    for (const [, , port] of servers)
      expect(Number(port)).toBe(loadConfig(environmentOf('authz')).connectPort);
  });

  test('drains for longer than the balancer takes to notice', () => {
    const text = readFileSync('deploy/haproxy.cfg', 'utf8');
    const [, inter = '', fall = ''] = /inter (\d+)ms .*fall (\d+)/.exec(text) ?? [];
    expect(Number(inter) * Number(fall)).toBeGreaterThan(0);
    expect(Number(inter) * Number(fall)).toBeLessThan(loadConfig(environmentOf('authz')).drainMs);
  });

  test('is scraped, where it runs', () => {
    const job = prometheus.scrape_configs.find((one) => one.job_name === 'authz');
    expect(job?.dns_sd_configs).toMatchObject([{ names: more, port: portsOf('authz').metrics }]);
  });
});

test('every mounted path is there, every volume is declared', () => {
  let fileCount = 0;
  for (const { volumes = [] } of Object.values(compose.services)) {
    for (const volume of volumes) {
      const [source = ''] = interpolated(volume, SECRETS).split(':');
      if (source.startsWith('.')) {
        expect(existsSync(source), source).toBe(true);
        fileCount++;
      } else expect(compose.volumes).toHaveProperty(source);
    }
  }
  expect(fileCount).toBeGreaterThanOrEqual(5);
});

test('Prometheus finds its rules where they are mounted', () => {
  const mounted = (serviceOf('prometheus').volumes ?? []).map((volume) => volume.split(':')[1]);
  expect(mounted).toContain('/etc/prometheus/prometheus.yml');
  for (const file of prometheus.rule_files) expect(mounted).toContain(`/etc/prometheus/${file}`);
  expect(prometheus.scrape_configs.map(({ job_name }) => job_name)).toEqual([...PRODUCTS]);
});

test('Grafana finds Prometheus and the dashboards', () => {
  const mounts = (serviceOf('grafana').volumes ?? []).map((volume) => volume.split(':'));
  const sources = readYaml('deploy/grafana/provisioning/datasources/prometheus.yml') as {
    datasources: { uid: string; url: string; isDefault: boolean }[];
  };
  expect(sources.datasources).toHaveLength(1);
  expect(sources.datasources[0]).toMatchObject({ url: 'http://prometheus:9090', isDefault: true });
  const { providers } = readYaml('deploy/grafana/provisioning/dashboards/gatehouse.yml') as {
    providers: { options: { path: string } }[];
  };
  const source = mounts.find(([, target]) => target === providers[0]?.options.path)?.[0] ?? '';
  expect(statSync(source).isDirectory()).toBe(true);
  const dashboards = readDashboards();
  expect(dashboards).toHaveLength(2);
  for (const { path } of dashboards) expect(`./${path}`.startsWith(`${source}/`)).toBe(true);
});

test('the image holds what the services need, and runs without rights', () => {
  const lines = readFileSync('Dockerfile', 'utf8').split('\n');
  const all = PRODUCTS.flatMap((name) => portsOf(name).all);
  const exposed =
    lines
      .find((line) => line.startsWith('EXPOSE '))
      ?.split(' ')
      .slice(1) ?? [];
  expect(new Set(exposed.map(Number))).toEqual(new Set(all));
  expect(lines.findLast((line) => line.startsWith('USER '))).toBe('USER 1000:1000');
  expect(lines.join('\n')).toMatch(/apt-get install .*\bbash\b.*\bgit\b/);
  for (const line of lines.filter((one) => one.startsWith('COPY '))) {
    for (const source of line.split(' ').slice(1, -1))
      expect(existsSync(source), source).toBe(true);
  }
  // Its loopback is reached by nobody. A runner would refuse to start for want of a token.
  for (const host of [OPTIONS.host.env, NOTIFY_OPTIONS.host.env])
    expect(lines.join('\n')).toContain(`${host}=0.0.0.0`);
  for (const name of PRODUCTS) {
    const commit = Object.values(TABLES[name]).find(({ env }) => env.endsWith('_COMMIT'))?.env;
    expect(lines.join('\n')).toContain(`${commit}=$COMMIT`);
  }
});
