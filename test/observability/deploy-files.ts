import { globSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** A YAML file with anchors and merge keys, as Docker Compose reads it. */
export function readYaml(path: string): unknown {
  return parse(readFileSync(path, 'utf8'), { merge: true });
}

export type ComposeService = {
  readonly image?: string;
  readonly profiles?: readonly string[];
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly user?: string;
  readonly mem_limit?: string;
  readonly cap_drop?: readonly string[];
  readonly logging?: { readonly options: Readonly<Record<string, string>> };
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
};
export type Compose = {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly networks: Readonly<Record<string, unknown>>;
};

export type ScrapeJob = {
  readonly job_name: string;
  readonly static_configs: readonly { readonly targets: readonly string[] }[];
  readonly dns_sd_configs?: readonly { readonly names: readonly string[]; readonly port: number }[];
};
export type PrometheusConfig = {
  readonly global: Readonly<Record<string, string>>;
  readonly rule_files: readonly string[];
  readonly scrape_configs: readonly ScrapeJob[];
};

export type AlertRule = {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
};

/** Of deploy/prometheus/alerts.yml. */
export function readAlerts(): readonly AlertRule[] {
  const { groups } = readYaml('deploy/prometheus/alerts.yml') as {
    groups: readonly { rules: readonly AlertRule[] }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

export type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly datasource: { readonly uid: string };
  }[];
};
export type Dashboard = {
  readonly path: string;
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly links: readonly { readonly url: string }[];
  readonly templating: { readonly list: readonly DashboardVariable[] };
};

type DashboardVariable = {
  readonly name: string;
  readonly type: string;
  readonly current: { readonly value: string | readonly string[] };
};

/** Those that Grafana is provisioned with. */
export function readDashboards(): readonly Dashboard[] {
  return globSync('deploy/grafana/dashboards/*.json')
    .toSorted()
    .map((path) => ({ ...(JSON.parse(readFileSync(path, 'utf8')) as Dashboard), path }));
}
