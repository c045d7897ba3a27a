import { hostEntryOf, isLoopbackName } from '../../http/host-allow-list.ts';
import { headerOf } from './call.ts';

/**
 * From where a request comes, as far as its browser says. `none`: no page is known to have sent it
 * (curl, scripts, the command, a link that was followed). `foreign`: anything that is not known to be good.
 */
export type OriginKind = 'none' | 'own' | 'loopback' | 'listed' | 'foreign';

const ORIGIN = /^([a-z][a-z0-9+.-]*):\/\/([A-Za-z0-9.:[\]_-]+)$/;
const DEFAULT_PORT_OF: Readonly<Record<string, string>> = { http: ':80', https: ':443' };
/** What Sec-Fetch-Site says of requests that no other site has caused. */
const OWN_SITES: readonly string[] = ['', 'none', 'same-origin'];

/**
 * Which pages are which, by headers that no page can forge (Fetch §3.2, Fetch Metadata §2). `origins`
 * are those of the setting.
 */
export class OriginPolicy {
  /** `*` is written out: every origin may do what a listed one may. */
  readonly isOpen: boolean;
  /** Others than the listed ones, loopback and the own page are refused whatever they ask. */
  readonly isClosed: boolean;
  readonly #origins: ReadonlySet<string>;

  constructor(origins: readonly string[]) {
    this.isOpen = origins.includes('*');
    this.isClosed = origins.length > 0 && !this.isOpen;
    this.#origins = new Set(origins.map((origin) => partsOf(origin)?.text ?? origin));
  }

  /** `headers` of a request whose Host was accepted. O(length of Origin). */
  kindOf(headers: Headers): OriginKind {
    const host = headerOf(headers, 'host');
    const origin = headers.get('origin');
    if (origin === null) return kindWithoutOrigin(headers, host);
    // `null`, and several of them joined by commas, are no origin.
    const parts = partsOf(origin);
    if (parts === undefined) return 'foreign';
    if (this.#origins.has(parts.text)) return 'listed';
    if (parts.scheme !== 'http' && parts.scheme !== 'https') return 'foreign';
    // Behind a proxy that ends TLS the page's scheme is not the one that arrives here.
    if (partsOf(`${parts.scheme}://${host}`)?.text === parts.text) return 'own';
    return isLoopbackName(hostEntryOf(parts.authority).name) ? 'loopback' : 'foreign';
  }
}

/** Browsers send Origin with whatever changes something; Sec-Fetch-Site says where one is held back. */
function kindWithoutOrigin(headers: Headers, host: string): OriginKind {
  const site = headerOf(headers, 'sec-fetch-site').trim().toLowerCase();
  if (OWN_SITES.includes(site)) return 'none';
  // Another port of this very machine, which counts as the same site.
  if (site === 'same-site' && isLoopbackName(hostEntryOf(host).name)) return 'loopback';
  return 'foreign';
}

type OriginParts = {
  readonly scheme: string;
  readonly authority: string;
  /** In lower case, without the scheme's own port. */
  readonly text: string;
};

/** Undefined for what is no origin of the form scheme://host[:port]. */
function partsOf(origin: string): OriginParts | undefined {
  const found = ORIGIN.exec(origin.toLowerCase());
  const [, scheme, authority] = found ?? [];
  if (scheme === undefined || authority === undefined) return undefined;
  const port = DEFAULT_PORT_OF[scheme];
  const bare =
    port !== undefined && authority.endsWith(port) ? authority.slice(0, -port.length) : authority;
  return { scheme, authority, text: `${scheme}://${bare}` };
}
