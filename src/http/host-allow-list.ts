import { isIP } from 'node:net';

export type HostRules = {
  /** The address that the service listens on, an IP address or `localhost`. */
  readonly host: string;
  /** Further names: `name` at the service's own port, `name:port` at that one. */
  readonly allowedHosts: readonly string[];
};

type HostEntry = { readonly name: string; readonly port: number | undefined };

/** Ports that a Host header leaves out. */
const DEFAULT_PORTS: ReadonlySet<number> = new Set([80, 443]);
const AUTHORITY = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/;
const NO_HOST: HostEntry = { name: '', port: -1 };

/** Whether only this machine can reach an address or name, of those that one may bind to. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/**
 * Whether `name`, in lower case and without brackets, means this machine in every browser: localhost, *.localhost (RFC 6761
 * §6.3), 127.0.0.0/8, ::1.
 */
export function isLoopbackName(name: string): boolean {
  return name.endsWith('.localhost') || isLoopback(name);
}

/**
 * Reads name and port of a Host header or the authority of a URL. The name is in lower case, without brackets and without a
 * dot at its end; the port is undefined when there is none. Text that is no authority has the name '', which no list has.
 * O(length).
 */
export function hostEntryOf(text: string): HostEntry {
  const parts = AUTHORITY.exec(text);
  if (parts === null) return NO_HOST;
  const name = (parts[1] ?? parts[2] ?? '').toLowerCase().replace(/\.$/, '');
  return { name, port: parts[3] === undefined ? undefined : Number(parts[3]) };
}

/**
 * Names that a service answers to. A page that rebinds its own name to this machine's address has the origin of the service,
 * so that CORS does not stop it. Its Host header still has its own name, and an IP address cannot be rebound.
 */
export class HostAllowList {
  readonly #entries: readonly HostEntry[];
  readonly #isWide: boolean;
  #acceptedHost = '';
  #acceptedPort: number | undefined;

  constructor({ host, allowedHosts }: HostRules) {
    this.#entries = allowedHosts.map(hostEntryOf);
    this.#isWide = !isLoopback(host);
  }

  /**
   * Whether Host (or :authority) names this service. Loopback names and addresses do, all addresses once others may connect,
   * and the further names. With an `ownPort` the port must be that one. Undefined leaves the port out: a forwarded port is
   * another one, and no port protects from rebinding. Hot: the header accepted last is compared and not parsed again.
   */
  accepts(host: string, ownPort: number | undefined): boolean {
    if (host === this.#acceptedHost && ownPort === this.#acceptedPort && host !== '') return true;
    if (!this.#isAccepted(hostEntryOf(host), ownPort)) return false;
    this.#acceptedHost = host;
    this.#acceptedPort = ownPort;
    return true;
  }

  #isAccepted(host: HostEntry, ownPort: number | undefined): boolean {
    if (host.name === '') return false;
    const isOwnPort =
      ownPort === undefined ||
      host.port === ownPort ||
      (host.port === undefined && DEFAULT_PORTS.has(ownPort));
    if (isOwnPort && this.#isOwnName(host.name)) return true;
    return this.#entries.some((entry) => {
      if (entry.name !== host.name) return false;
      if (entry.port === undefined) return isOwnPort;
      return entry.port === host.port || (host.port === undefined && DEFAULT_PORTS.has(entry.port));
    });
  }

  #isOwnName(name: string): boolean {
    return isLoopbackName(name) || (this.#isWide && isIP(name) !== 0);
  }
}

export type ListeningAddress = {
  /** An IP address or a host name. */
  readonly host: string;
  readonly isBehindProxy: boolean;
  /** The settings that these came from. */
  readonly hostSetting: string;
  readonly proxySetting: string;
};

/**
 * The fields of the event `listens_without_tls`: other machines can reach the address, and nothing says that what they send
 * is encrypted on the way. Undefined where there is nothing to warn of.
 */
export function plainTextWarning(
  address: ListeningAddress,
): { readonly host: string; readonly detail: string } | undefined {
  const { host, isBehindProxy, hostSetting, proxySetting } = address;
  if (isBehindProxy || isLoopback(host)) return undefined;
  const detail =
    'other machines can reach this address in plain text: whoever is on the way reads requests and tokens, and metrics ask ' +
    `for no token. Unset ${hostSetting} to serve this machine alone; or put a proxy that ends TLS in front, let the network ` +
    `keep all others out, and set ${proxySetting}=true`;
  return { host, detail };
}
