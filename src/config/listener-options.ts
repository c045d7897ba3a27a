import { PRINTABLE, http1IdleOption, portOption } from './common-options.ts';
import { http1ParserOption } from './http1-parser-option.ts';
import {
  booleanOption,
  listOption,
  optionalIntegerOption,
  textOption,
  type OptionTable,
} from './option.ts';

/** Addresses that the service listens on, and its own name. */
export const LISTENER_OPTIONS = {
  connectPort: portOption(
    'GATEWAY_CONNECT_PORT',
    'Port of the RPC listener. 0 takes a free one.',
    8080,
  ),
  metricsPort: portOption(
    'GATEWAY_METRICS_PORT',
    'Port of /metrics, /healthz and /readyz. 0 takes a free one.',
    9090,
  ),
  listenFds: listOption({
    env: 'GATEWAY_LISTEN_FDS',
    description:
      "Descriptors of sockets that listen already; they replace GATEWAY_HOST and GATEWAY_CONNECT_PORT. `gatehouse serve --instances N` sets them. The process accepts from the first at once, and from its neighbours' where connections are left waiting.",
    fallback: [],
    pattern: /^\d{1,5}$/,
    rule: 'a descriptor',
  }),
  metricsListenFd: optionalIntegerOption({
    env: 'GATEWAY_METRICS_LISTEN_FD',
    description: 'Descriptor that replaces GATEWAY_METRICS_PORT. Set both descriptors or neither.',
    min: 3,
    max: 65_535,
  }),
  isOpenFgaServed: booleanOption({
    env: 'GATEWAY_OPENFGA_API',
    description:
      "Whether the RPC listener also serves OpenFGA's HTTP API v1, below `/openfga`. See docs/openfga.md.",
    fallback: false,
  }),
  http1Parser: http1ParserOption('GATEWAY_HTTP1'),
  httpIdleMs: http1IdleOption('GATEWAY_HTTP_IDLE_MS'),
  instanceName: textOption({
    env: 'GATEWAY_INSTANCE_NAME',
    description:
      'Name that each log line carries as `process`. Set it where several instances write to one log.',
    fallback: undefined,
    fallbackText: 'unset',
    ...PRINTABLE,
  }),
} as const satisfies OptionTable;
