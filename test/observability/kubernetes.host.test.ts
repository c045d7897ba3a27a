import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { OPTIONS } from '../../src/config/options.ts';

const FOLDER = 'deploy/kubernetes';
const LABELS = {
  'app.kubernetes.io/name': 'gatehouse',
  'app.kubernetes.io/component': 'authz',
};

type Named = { readonly name: string };
type Port = Named & { readonly containerPort: number };
type Probe = { readonly httpGet: { readonly path: string; readonly port: string } };
type Container = {
  readonly command: readonly string[];
  readonly ports: readonly Port[];
  readonly envFrom: readonly { readonly configMapRef: Named }[];
  readonly env?: unknown;
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe & {
    readonly periodSeconds: number;
    readonly failureThreshold: number;
  };
  readonly livenessProbe: Probe;
  readonly lifecycle: {
    readonly preStop: { readonly exec: { readonly command: readonly string[] } };
  };
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts: readonly (Named & { readonly mountPath: string })[];
};
type Labels = Readonly<Record<string, string>>;
type Selector = { readonly matchLabels: Labels };
type Pod = {
  readonly containers: readonly Container[];
  readonly terminationGracePeriodSeconds: number;
  readonly automountServiceAccountToken: boolean;
  readonly securityContext: Readonly<Record<string, unknown>>;
};
/** What the tests look at of each kind. */
type Specs = {
  readonly ConfigMap: undefined;
  readonly Deployment: {
    readonly selector: Selector;
    readonly strategy: { readonly rollingUpdate: Readonly<Record<string, number>> };
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
  };
  readonly NetworkPolicy: { readonly podSelector: Selector };
  readonly PodDisruptionBudget: { readonly selector: Selector };
  readonly Service: {
    readonly selector: Labels;
    readonly ports: readonly { readonly targetPort: string }[];
  };
};
type Kind = keyof Specs;
type Resource<K extends Kind = Kind> = {
  readonly kind: K;
  readonly metadata: Named;
  readonly data: Readonly<Record<string, string>>;
  readonly spec: Specs[K];
};

const resources = globSync(`${FOLDER}/*.yaml`)
  .filter((path) => !path.endsWith('kustomization.yaml'))
  .flatMap((path) => parseAllDocuments(readFileSync(path, 'utf8')))
  .map((document) => document.toJSON() as Resource);

function isOfKind<K extends Kind>(one: Resource, kind: K): one is Resource<K> {
  return one.kind === kind;
}

function resource<K extends Kind>(kind: K, name = 'gatehouse'): Resource<K> {
  const found = resources
    .filter((one) => isOfKind(one, kind))
    .find(({ metadata }) => metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
}

const pod = resource('Deployment').spec.template.spec;
const container = pod.containers[0] as Container;
const settings = resource('ConfigMap').data;
const portNamed = (name: string): number | undefined =>
  container.ports.find((port) => port.name === name)?.containerPort;

const kustomized = spawnSync('kubectl', ['kustomize', FOLDER], { encoding: 'utf8' });

describe.skipIf(kustomized.error !== undefined)(
  'kubectl (Debian package kubernetes-client)',
  () => {
    test('kustomize puts everything together, labelled, with selectors that find the pods', () => {
      expect(kustomized).toMatchObject({ status: 0, stderr: '' });
      const made = parseAllDocuments(kustomized.stdout).map((one) => one.toJSON() as Resource);
      expect(made.map(({ kind }) => kind).toSorted()).toEqual(
        resources.map(({ kind }) => kind).toSorted(),
      );
      const deployment = made.find((one) => isOfKind(one, 'Deployment'));
      expect(deployment?.spec.template.metadata.labels).toEqual(LABELS);
    });
  },
);

const schemas = process.env['KUBERNETES_SCHEMAS'];
const found = spawnSync('kubeconform', ['-v']);

describe.skipIf(found.error !== undefined || schemas === undefined)(
  'kubeconform with KUBERNETES_SCHEMAS',
  () => {
    test('finds nothing wrong', () => {
      const { status, stdout } = spawnSync(
        'kubeconform',
        [
          '-strict',
          '-schema-location',
          schemas ?? '',
          '-ignore-filename-pattern',
          'kustomization',
          FOLDER,
        ],
        { encoding: 'utf8' },
      );
      expect([stdout, status]).toEqual(['', 0]);
    });
  },
);

test('every selector finds the pods, and none is empty: that would be all of a namespace', () => {
  expect(resource('Deployment').spec.selector.matchLabels).toEqual(LABELS);
  expect(resource('PodDisruptionBudget').spec.selector.matchLabels).toEqual(LABELS);
  expect(resource('NetworkPolicy').spec.podSelector.matchLabels).toEqual(LABELS);
  expect(resource('Service').spec.selector).toEqual(LABELS);
  expect(resource('Service', 'gatehouse-instances').spec.selector).toEqual(LABELS);
});

test('settings are options; secrets are files that are mounted, and none is in the environment', () => {
  const options = Object.values(OPTIONS);
  const secret = options.filter((option) => option.secret).map(({ env }) => env);
  const mounts = container.volumeMounts.map(({ mountPath }) => mountPath);
  for (const [name, value] of Object.entries(settings)) {
    expect(secret).not.toContain(name);
    const ofFile = name.endsWith('_FILE') ? name.slice(0, -'_FILE'.length) : undefined;
    if (ofFile === undefined) {
      const option = options.find(({ env }) => env === name);
      expect(option, name).toBeDefined();
      expect(() => option?.parse(value)).not.toThrow();
    } else {
      expect(secret).toContain(ofFile);
      expect(mounts).toContain(value.slice(0, value.lastIndexOf('/')));
    }
  }
  expect(settings[OPTIONS.host.env]).toBe('0.0.0.0');
  expect(container.env).toBeUndefined();
  expect(container.envFrom).toEqual([{ configMapRef: { name: 'gatehouse' } }]);
  expect(readFileSync(`${FOLDER}/kustomization.yaml`, 'utf8')).toMatch(
    /create secret generic gatehouse/,
  );
});

test('ports and probes are those that the service has', () => {
  expect(portNamed('rpc')).toBe(OPTIONS.connectPort.parse(OPTIONS.connectPort.fallbackText));
  expect(portNamed('metrics')).toBe(OPTIONS.metricsPort.parse(OPTIONS.metricsPort.fallbackText));
  for (const [probe, path] of [
    [container.startupProbe, '/healthz'],
    [container.readinessProbe, '/readyz'],
    [container.livenessProbe, '/healthz'],
  ] as const) {
    expect(probe.httpGet).toEqual({ path, port: 'metrics' });
  }
  const named = container.ports.map(({ name }) => name);
  for (const name of ['gatehouse', 'gatehouse-instances']) {
    for (const { targetPort } of resource('Service', name).spec.ports)
      expect(named).toContain(targetPort);
  }
});

test('a pod is replaced before it goes, is known to be going before it stops, and has the time to', () => {
  const { strategy } = resource('Deployment').spec;
  expect(strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
  const { readinessProbe, lifecycle } = container;
  const drainMs = Number(settings['GATEWAY_DRAIN_MS']);
  expect(drainMs).toBeGreaterThan(
    readinessProbe.periodSeconds * readinessProbe.failureThreshold * 1_000,
  );
  const [program, seconds] = lifecycle.preStop.exec.command;
  expect(program).toBe('sleep');
  const neededMs =
    Number(seconds) * 1_000 + drainMs + Number(settings['GATEWAY_SHUTDOWN_TIMEOUT_MS']);
  expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(neededMs);
});

test('nothing runs as root, may become it, writes to its image, or asks Kubernetes anything', () => {
  expect(pod.securityContext).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  });
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  expect(pod.automountServiceAccountToken).toBe(false);
});
